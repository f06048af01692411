//! One change of a good policy, and all that is said of it.

use serde_json::{Value, json};

use super::policy::Written;

/// Writes `value` at a path of the good policy; `null` takes away what is there.
pub(crate) fn set(written: &mut Written, path: &str, value: Value) {
    let mut names = path.split('/');
    let variable = names.next().unwrap().to_owned();
    let Some(last) = names.next_back() else {
        if value.is_null() {
            written.0.remove(&variable)
        } else {
            written.0.insert(variable, value)
        };
        return;
    };
    let mut table = written.0.get_mut(&variable).unwrap();
    for name in names {
        if table[name].is_null() {
            table[name] = json!({});
        }
        table = &mut table[name];
    }
    let table = table.as_object_mut().unwrap();
    if value.is_null() {
        table.remove(last)
    } else {
        table.insert(last.to_owned(), value)
    };
}

/// One change of the good policy, and all that is said of it.
pub(crate) fn check(path: &str, value: impl Into<Value>, want: &[&str]) {
    let (mut written, value) = (Written::good(), value.into());
    set(&mut written, path, value.clone());
    let faults = written.read().map(|_| ()).map_err(|faults| faults.0);
    let want: Vec<String> = want.iter().map(|fault| (*fault).to_owned()).collect();
    assert_eq!(faults, if want.is_empty() { Ok(()) } else { Err(want) }, "{path} = {value}");
}
