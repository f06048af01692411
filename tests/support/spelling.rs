//! Names as they may be spelt.

/// A name as a reader would take it that does not care for case: Go's folds two letters beyond ASCII as well.
pub(crate) fn folded(name: &str) -> String {
    name.chars().flat_map(char::to_lowercase).map(|letter| if letter == 'ſ' { 's' } else { letter }).collect()
}

/// A name as it stands in the text: as it is, with an escape, or in a case that some servers do not tell apart.
pub(crate) fn spelled(name: &str, how: u8) -> String {
    match how {
        0 => {
            let escaped = name.chars().next().map(|first| format!("\\u{:04x}", u32::from(first))).unwrap_or_default();
            format!("\"{escaped}{}\"", name.chars().skip(1).collect::<String>())
        }
        1 => format!("\"{}\"", name.replace('s', "ſ").replace('k', "\u{212a}")),
        2 => format!("\"{}\"", name.to_uppercase()),
        _ => format!("\"{name}\""),
    }
}

/// Every name that a letter in another case, or one that folds to it, makes of a name.
pub(crate) fn lookalikes(name: &str) -> Vec<String> {
    let other = |letter: char| match letter {
        'k' => vec!['K', '\u{212a}'],
        's' => vec!['S', 'ſ'],
        letter => vec![letter.to_ascii_uppercase()],
    };
    let letters =
        name.char_indices().flat_map(|(place, letter)| other(letter).into_iter().map(move |new| (place, new)));
    let changed = letters.map(|(place, new)| {
        let mut name = name.to_owned();
        name.replace_range(place..=place, &new.to_string());
        name
    });
    changed.filter(|changed| changed != name).collect()
}
