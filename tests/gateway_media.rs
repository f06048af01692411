//! Routes that judge, draw and speak, with everything outside of the call in memory: what is held, what is charged, and
//! that the bytes are the upstream's.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on has failed")]

use support::media::{answers, became, events, json_answer, post, world};
use support::stream::Turn;
use support::world::{Told, World};

mod support {
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod flow;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod ledger;
    pub(crate) mod media;
    pub(crate) mod policy;
    pub(crate) mod stream;
    #[expect(dead_code, reason = "what other tests need of it")]
    pub(crate) mod world;
}

const MODERATIONS: &str = "/v1/moderations";
const JSON: &str = "application/json";

fn sent(world: &World) -> String {
    String::from_utf8(world.sent.borrow()[0].body.clone()).unwrap()
}

fn ask(world: &mut World, path: &str, body: &str) -> Told {
    post(world, path, JSON, body.as_bytes())
}

#[test]
fn a_moderation_is_charged_what_it_reads() {
    const ANSWER: &str = r#"{"id":"modr-1","model":"omni-moderation-latest","results":[{"flagged":false}]} "#;
    let image =
        format!(r#"[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{}"}}}}]"#, "A".repeat(900));
    // A token a byte; the type of a part is counted with it.
    for (input, tokens) in [(r#""A river?""#, 8), (r#"["One","Two"]"#, 6), (image.as_str(), 500 + 9)] {
        let mut world = world(json_answer(ANSWER));
        let told = ask(&mut world, MODERATIONS, &format!(r#"{{"input":{input}}}"#));
        assert_eq!(became(&world, &told), format!("200, held {0}, settle exact {0}", tokens * 1_000), "{input}");
        assert_eq!(told.text(), ANSWER);
        // The model that it is priced by is named, whatever the provider's default is.
        assert_eq!(sent(&world), format!(r#"{{"model":"judge","input":{input}}}"#));
    }
    let mut world = world(json_answer("{}"));
    let told = ask(&mut world, MODERATIONS, r#"{"input":"x","model":"omni-moderation-latest"}"#);
    assert_eq!(became(&world, &told), "502 upstream_invalid, held 1000, release");
}
