//! The platform's own types, as far as they are used.
//!
//! Raw bindings, because the `worker` crate's own cost about a third more CPU per call, check class names that fakes do
//! not have, and lack what is needed here: location hints with jurisdictions, synchronous storage, `catch` throughout.
//! An import that throws without `catch` would end the whole isolate.

use js_sys::{Object, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{ReadableStream, Request, WritableStream};

use crate::time::UnixMillis;

#[wasm_bindgen]
extern "C" {
    /// A namespace of Durable Objects.
    pub(super) type Namespace;

    #[wasm_bindgen(method, catch, js_name = getByName)]
    pub(super) fn get_by_name(this: &Namespace, name: &str, options: &Object) -> Result<Stub, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub(super) fn jurisdiction(this: &Namespace, name: &str) -> Result<Namespace, JsValue>;

    /// A Durable Object, seen from a Worker.
    pub(super) type Stub;

    #[wasm_bindgen(method, catch)]
    pub(super) fn fetch(this: &Stub, url: &str) -> Result<Promise, JsValue>;

    /// A Durable Object's own state.
    pub type State;

    #[wasm_bindgen(method, getter)]
    pub(super) fn storage(this: &State) -> Storage;

    pub(super) type Storage;

    #[wasm_bindgen(method, getter)]
    pub(super) fn kv(this: &Storage) -> SyncKv;

    #[wasm_bindgen(method, catch, js_name = setAlarm)]
    pub(super) fn set_alarm(this: &Storage, at: f64) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch, js_name = deleteAll)]
    pub(super) fn delete_all(this: &Storage) -> Result<Promise, JsValue>;

    /// Storage whose answers are there at once.
    pub(super) type SyncKv;

    #[wasm_bindgen(method, catch)]
    pub(super) fn get(this: &SyncKv, key: &str) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub(super) fn put(this: &SyncKv, key: &str, value: &str) -> Result<(), JsValue>;

    /// A pipe within the platform: what is written comes out at its other end without passing through JavaScript.
    pub(super) type IdentityTransformStream;

    #[wasm_bindgen(constructor, catch)]
    pub(super) fn new() -> Result<IdentityTransformStream, JsValue>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn readable(this: &IdentityTransformStream) -> ReadableStream;

    #[wasm_bindgen(method, getter)]
    pub(super) fn writable(this: &IdentityTransformStream) -> WritableStream;

    /// A reader that fills a buffer of ours with as much as there is.
    #[derive(Clone)]
    pub(super) type ByobReader;

    #[wasm_bindgen(method, catch)]
    pub(super) fn read(this: &ByobReader, view: &Uint8Array) -> Result<Promise, JsValue>;

    #[wasm_bindgen(method, catch)]
    pub(super) fn cancel(this: &ByobReader) -> Result<Promise, JsValue>;

    /// What a read comes to.
    pub(super) type ReadResult;

    #[wasm_bindgen(method, getter)]
    pub(super) fn done(this: &ReadResult) -> bool;

    #[wasm_bindgen(method, getter)]
    pub(super) fn value(this: &ReadResult) -> Option<Uint8Array>;

    #[wasm_bindgen(catch, js_name = fetch)]
    pub(super) fn global_fetch(request: &Request) -> Result<Promise, JsValue>;

    #[wasm_bindgen(js_namespace = crypto, js_name = randomUUID)]
    pub(super) fn random_uuid() -> String;

    #[wasm_bindgen(js_namespace = console, js_name = log)]
    pub(super) fn console_log(line: &str);

    #[wasm_bindgen(js_namespace = console, js_name = error)]
    pub(super) fn console_error(line: &str);

    /// The platform's models. What it is called with is made by `JSON.parse`: a map would arrive empty.
    pub(super) type Models;

    #[wasm_bindgen(method, catch)]
    pub(super) fn run(this: &Models, model: &str, input: &JsValue, options: &Object) -> Result<Promise, JsValue>;

    /// A dataset of the platform's analytics.
    pub(super) type Dataset;

    #[wasm_bindgen(method, catch, js_name = writeDataPoint)]
    pub(super) fn write_data_point(this: &Dataset, point: &Object) -> Result<(), JsValue>;
}

/// The time. It stands still between two I/O events, and is read nowhere else.
#[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds since 1970, far below 2^53")]
pub(super) fn now() -> UnixMillis {
    UnixMillis(js_sys::Date::now() as u64)
}

/// A moment as JavaScript has it.
#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970, far below 2^53")]
pub(super) fn date(at: UnixMillis) -> f64 {
    at.0 as f64
}

/// A member of an object; `None` if there is none.
pub(super) fn member(object: &JsValue, name: &str) -> Option<JsValue> {
    js_sys::Reflect::get(object, &name.into()).ok().filter(|value| !value.is_undefined() && !value.is_null())
}

/// What was thrown, as a line for the log.
pub(super) fn thrown(fault: &JsValue) -> String {
    member(fault, "message").and_then(|text| text.as_string()).unwrap_or_else(|| format!("{fault:?}"))
}
