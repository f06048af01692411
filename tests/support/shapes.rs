//! Texts for the tests of the token counter: a seeded source of numbers and shapes made from it.

/// A small generator with a seed, so that a failure names the text that caused it.
pub(crate) struct Dice(u64);

impl Dice {
    /// The same seed gives the same throws.
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = Self(seed ^ 0x9E37_79B9_7F4A_7C15);
        // Near seeds start alike; a few throws drive them apart.
        for _ in 0..8 {
            dice.throw(2);
        }
        dice
    }

    /// A number below `sides`.
    pub(crate) fn throw(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let high = (self.0 ^ (self.0 >> 29)) >> 33;
        usize::try_from(high).unwrap_or(0) % sides.max(1)
    }

    /// One of the items.
    #[expect(clippy::indexing_slicing, reason = "a throw is below the number of items")]
    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        let at = self.throw(items.len());
        items[at]
    }
}

/// Alphabets from which words, runs and mixtures are drawn.
pub(crate) const ALPHABETS: [&str; 30] = [
    "abcdefghijklmnopqrstuvwxyz",
    "aA",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "ab",
    "etaoinshr",
    "aeiou' ",
    "0123456789",
    "0123456789abcdef",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    " \n",
    " \t\n\r",
    " ",
    "-=*_#",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    ".,;:!? ",
    "/\n\r.",
    "абвгдеёжзийклмн",
    "αβγδεζηθ",
    "אבגדהוזח",
    "ابتثجحخد َُِ",
    "क्षत्रिंाी",
    "กขคงจฉช่้",
    "的一是不了在人有我他这个们中",
    "がぎぐアイウ漢字かな",
    "가나다라마바사",
    "😀😁👍🏽\u{200d}❤\u{fe0f}",
    "aA\u{301}漢ʰ'sS \n1!",
    "\u{a0}\u{85}\u{2003}\u{3000} \n",
    "ſsS'tTlLdDmMrevRE ",
    "éßñüøåçœ",
];

/// A text of about `length` characters: a mixture, runs, a period, or spaced words of an alphabet.
pub(crate) fn text(dice: &mut Dice, length: usize) -> String {
    let letters: Vec<char> = alphabet(dice);
    match dice.throw(5) {
        0 => (0..length).map(|_| dice.pick(&letters)).collect(),
        1 => runs(dice, &letters, length),
        2 => period(dice, &letters, length),
        3 => words(dice, &letters, length),
        _ => (0..length).map(|_| any_char(dice)).collect(),
    }
}

fn alphabet(dice: &mut Dice) -> Vec<char> {
    let mut letters: Vec<char> = dice.pick(&ALPHABETS).chars().collect();
    match dice.throw(4) {
        0 => letters.extend(dice.pick(&ALPHABETS).chars()),
        1 => {
            letters = (0..=dice.throw(4)).map(|_| dice.pick(&letters)).collect();
        }
        _ => {}
    }
    letters
}

fn runs(dice: &mut Dice, letters: &[char], length: usize) -> String {
    let most = dice.pick(&[4, 20, 140, 300]);
    let mut text = String::new();
    while text.chars().count() < length {
        let letter = dice.pick(letters);
        text.extend(std::iter::repeat_n(letter, 1 + dice.throw(most)));
    }
    text
}

fn period(dice: &mut Dice, letters: &[char], length: usize) -> String {
    let unit: Vec<char> = (0..=dice.throw(40)).map(|_| dice.pick(letters)).collect();
    unit.iter().copied().cycle().take(length).collect()
}

fn words(dice: &mut Dice, letters: &[char], length: usize) -> String {
    let mut text = String::new();
    for _ in 0..length.div_ceil(6) {
        text.extend((0..dice.throw(11)).map(|_| dice.pick(letters)));
        text.push_str(dice.pick(&[" ", " ", " ", ", ", ".\n", "'s ", "\n\n", "  ", "/", "_"]));
    }
    text
}

/// Any character, the low planes more often than the high ones.
fn any_char(dice: &mut Dice) -> char {
    let top = dice.pick(&[0x80, 0x100, 0x250, 0x600, 0x2000, 0x3100, 0x1_0000, 0x2_0000, 0x11_0000]);
    let point = u32::try_from(dice.throw(top)).unwrap_or(0);
    char::from_u32(point).unwrap_or('\u{FFFD}')
}
