//! How large an image is, by the first bytes of its `data:` URL.
//!
//! Invariant: a size that is said is the size that every decoder finds. Decoders forgive much, and not the same: what
//! is not written the plain way (bytes between segments, a second header, line breaks in the base64) has no size
//! here, so that nobody can show us a small image and the model a large one.
//!
//! Work: what is read is decoded as it is needed and no further than [`TEXT_MAX`]; nothing of an image is kept.

use std::io::{BufRead, BufReader, Read};

use base64::engine::general_purpose::STANDARD;
use base64::read::DecoderReader;

/// A size in pixels. Neither side is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// How much of an image's base64 is looked at: 256 KiB of image, where a photo's preview and colour profile end well
/// before. A multiple of four, so that no group is cut.
const TEXT_MAX: u64 = 256 * 1_024 / 3 * 4;
/// How much is decoded at a time. Most images are known after less than a hundred bytes.
const STEP: usize = 768;

/// The size of the image in a `data:` URL, if it is there to see: PNG, JPEG, GIF and WebP in base64.
#[must_use]
pub fn pixels(url: &str) -> Option<Pixels> {
    // First of all, so that of a remote address nothing more is read.
    if !url.get(.."data:".len())?.eq_ignore_ascii_case("data:") {
        return None;
    }
    let (head, data) = url.split_once(',')?;
    if !head.rsplit_once(';')?.1.eq_ignore_ascii_case("base64") {
        return None;
    }
    pixels_of_base64(data)
}

/// The size of the image that `data` is the base64 of.
#[must_use]
pub fn pixels_of_base64(data: &str) -> Option<Pixels> {
    size(&mut BufReader::with_capacity(STEP, DecoderReader::new(data.as_bytes().take(TEXT_MAX), &STANDARD)))
}

/// The size of an image by its bytes, whatever it is said to be.
fn size(image: &mut impl BufRead) -> Option<Pixels> {
    match &bytes(image)? {
        b"\x89P" => png(image),
        b"\xFF\xD8" => jpeg(image),
        b"GI" => gif(image),
        b"RI" => webp(image),
        _ => None,
    }
}

fn png(image: &mut impl BufRead) -> Option<Pixels> {
    expect(image, b"NG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let (width, height) = (u32::from_be_bytes(bytes(image)?), u32::from_be_bytes(bytes(image)?));
    // What is left of the header, and its checksum.
    skip(image, 5 + 4)?;
    loop {
        let length = usize::try_from(u32::from_be_bytes(bytes(image)?)).ok()?;
        match &bytes(image)? {
            b"IDAT" => return not_empty(width, height),
            b"IHDR" => return None,
            _ => skip(image, length.saturating_add(4))?,
        }
    }
}

fn jpeg(image: &mut impl BufRead) -> Option<Pixels> {
    let mut found = None;
    loop {
        let [0xFF, marker] = bytes(image)? else { return None };
        // These have no length: they, and filling, do not belong before the picture.
        if matches!(marker, 0x00 | 0x01 | 0xD0..=0xD9 | 0xFF) {
            return None;
        }
        let length = usize::from(u16::from_be_bytes(bytes(image)?)).checked_sub(2)?;
        match marker {
            0xDA => return found,
            0xC4 | 0xCC => skip(image, length)?,
            0xC0..=0xCF if found.is_none() => {
                let [_, top, high, left, wide] = bytes(image)?;
                let (height, width) = (u16::from_be_bytes([top, high]), u16::from_be_bytes([left, wide]));
                found = Some(not_empty(width.into(), height.into())?);
                skip(image, length.checked_sub(5)?)?;
            }
            0xC0..=0xCF => return None,
            _ => skip(image, length)?,
        }
    }
}

/// A GIF's first picture may be larger than the screen it says it is for; some decoders grow the screen.
fn gif(image: &mut impl BufRead) -> Option<Pixels> {
    if !matches!(&bytes(image)?, b"F87a" | b"F89a") {
        return None;
    }
    let (width, height) = (little(image)?, little(image)?);
    let [flags, _, _] = bytes(image)?;
    if flags & 0x80 != 0 {
        skip(image, 3 << ((flags & 7) + 1))?;
    }
    loop {
        match bytes(image)? {
            [0x21] => {
                skip(image, 1)?;
                while let [length @ 1..=u8::MAX] = bytes(image)? {
                    skip(image, length.into())?;
                }
            }
            [0x2C] => {
                let (left, top) = (little(image)?, little(image)?);
                let (right, bottom) = (left + little(image)?, top + little(image)?);
                return not_empty(width.max(right), height.max(bottom));
            }
            _ => return None,
        }
    }
}

/// A WebP's first chunk has the size: decoders refuse an image that differs from its canvas.
fn webp(image: &mut impl BufRead) -> Option<Pixels> {
    expect(image, b"FF")?;
    skip(image, 4)?;
    expect(image, b"WEBP")?;
    let kind = bytes(image)?;
    skip(image, 4)?;
    match &kind {
        b"VP8 " => {
            let [tag, _, _] = bytes(image)?;
            expect(image, b"\x9D\x01\x2A")?;
            // The two bits above are how much to enlarge it for a screen.
            let (width, height) = (little(image)? & 0x3FFF, little(image)? & 0x3FFF);
            if tag & 1 == 0 { not_empty(width, height) } else { None }
        }
        b"VP8L" => {
            expect(image, b"\x2F")?;
            let sides = u32::from_le_bytes(bytes(image)?);
            not_empty((sides & 0x3FFF) + 1, ((sides >> 14) & 0x3FFF) + 1)
        }
        b"VP8X" => {
            skip(image, 4)?;
            let [left, middle, right, top, centre, bottom] = bytes(image)?;
            let width = u32::from_le_bytes([left, middle, right, 0]) + 1;
            not_empty(width, u32::from_le_bytes([top, centre, bottom, 0]) + 1)
        }
        _ => None,
    }
}

/// An image without a side is one whose size stands elsewhere.
fn not_empty(width: u32, height: u32) -> Option<Pixels> {
    (width > 0 && height > 0).then_some(Pixels { width, height })
}

fn bytes<const N: usize>(image: &mut impl BufRead) -> Option<[u8; N]> {
    let mut read = [0; N];
    image.read_exact(&mut read).ok()?;
    Some(read)
}

/// Two bytes, the lower one first.
fn little(image: &mut impl BufRead) -> Option<u32> {
    Some(u16::from_le_bytes(bytes(image)?).into())
}

fn expect<const N: usize>(image: &mut impl BufRead, wanted: &[u8; N]) -> Option<()> {
    (bytes(image)? == *wanted).then_some(())
}

fn skip(image: &mut impl BufRead, mut count: usize) -> Option<()> {
    while count > 0 {
        let step = image.fill_buf().ok()?.len().min(count);
        if step == 0 {
            return None;
        }
        image.consume(step);
        count -= step;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::*;

    /// Black images, 3 wide and 2 high, as Pillow writes them.
    const IMAGES: [(&str, &str); 7] = [
        ("png", "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACAQAAAAC1D1u3AAAADElEQVR4nGNgYGAAAAAEAAH2FzhVAAAAAElFTkSuQmCC"),
        (
            "jpeg",
            "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP///////////////////////////////////////////////////////////////////////////\
             ///////////wAALCAACAAMBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z",
        ),
        // Progressive, with a camera's note that it lies on its side.
        (
            "jpeg",
            "/9j/4AAQSkZJRgABAQAAAQABAAD/4QAiRXhpZgAATU0AKgAAAAgAAQESAAMAAAABAAYAAAAAAAD/2wBDAP////////////////////////\
             //////////////////////////////////////////////////////////////wgALCAACAAMBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAA\
             Av/aAAgBAQAAAAE//8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABBQJ//8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQAGPwJ/\
             /8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPyF//9oACAEBAAAAEH//xAAUEAEAAAAAAAAAAAAAAAAAAAAA/9oACAEBAAE/EH//\
             2Q==",
        ),
        ("gif", "R0lGODdhAwACAIEAAAAAAAAAAAAAAAAAACwAAAAAAwACAAAIBgABCBwYEAA7"),
        // Lossy; lossless; with transparency and a camera's note.
        ("webp", "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoDAAIAD8D+JaQAA3AA/ua1AAA="),
        ("webp", "UklGRhoAAABXRUJQVlA4TA4AAAAvAkAAAAcQEf0PRET/Aw=="),
        (
            "webp",
            "UklGRmgAAABXRUJQVlA4WAoAAAAYAAAAAgAAAQAAQUxQSAcAAAAAAAAAAAAAAFZQOCAYAAAAMAEAnQEqAwACAA/A/iWkAANwAP7mtQAA\
             RVhJRhoAAABNTQAqAAAACAABARIAAwAAAAEABgAAAAAAAA==",
        ),
    ];
    const SMALL: Option<Pixels> = Some(Pixels { width: 3, height: 2 });

    fn url(image: &[u8]) -> String {
        format!("data:image/png;base64,{}", STANDARD.encode(image))
    }

    fn decoded(index: usize) -> Vec<u8> {
        STANDARD.decode(IMAGES[index].1).unwrap()
    }

    /// A chunk of a PNG, its checksum left open: a checksum makes no image larger.
    fn chunk(kind: [u8; 4], data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], &kind, data, &[0; 4]].concat()
    }

    fn header(width: u32, height: u32) -> Vec<u8> {
        chunk(*b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat())
    }

    fn png_of(chunks: &[Vec<u8>]) -> Option<Pixels> {
        pixels(&url(&[b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()))
    }

    /// A segment of a JPEG.
    fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len() + 2).unwrap().to_be_bytes();
        [&[0xFF, marker], &length[..], data].concat()
    }

    fn frame(width: u16, height: u16) -> Vec<u8> {
        let (width, height) = (width.to_be_bytes(), height.to_be_bytes());
        segment(0xC0, &[&[8], &height[..], &width, &[1, 1, 0x11, 0]].concat())
    }

    fn jpeg_of(segments: &[Vec<u8>]) -> Option<Pixels> {
        pixels(&url(&[b"\xFF\xD8".to_vec(), segments.concat()].concat()))
    }

    fn gif_of(screen: [u8; 4], rest: &[u8]) -> Option<Pixels> {
        pixels(&url(&[b"GIF89a", &screen[..], rest].concat()))
    }

    #[test]
    fn the_size_of_real_images_is_seen() {
        for (index, (kind, data)) in IMAGES.iter().enumerate() {
            assert_eq!(pixels(&format!("data:image/{kind};base64,{data}")), SMALL, "{kind} {index}");
        }
        // What it is said to be does not matter.
        assert_eq!(pixels(&format!("DATA:text/plain;charset=x;BASE64,{}", IMAGES[0].1)), SMALL);
    }

    #[test]
    fn a_cut_image_has_its_size_or_none() {
        for (index, (kind, _)) in IMAGES.iter().enumerate() {
            let image = decoded(index);
            let seen: Vec<_> = (0..=image.len()).map(|length| size(&mut &image[..length])).collect();
            let first = seen.iter().position(Option::is_some).unwrap();
            assert!(first >= 16, "{kind} {index}: {first}");
            assert!(seen[..first].iter().all(Option::is_none) && seen[first..].iter().all(|size| *size == SMALL));
        }
    }

    #[test]
    fn what_is_no_image_in_base64_has_no_size() {
        let data = IMAGES[0].1;
        for url in [
            "",
            ",",
            "https://example.com/a.png",
            "https://example.com/data:image/png;base64,",
            &format!("https://example.com/;base64,{data}"),
            data,
            &format!("data:image/png,{data}"),
            &format!("data:base64,{data}"),
            &format!("data:image/png;base64;x=y,{data}"),
            &format!(" data:image/png;base64,{data}"),
            &format!("dätä:;base64,{data}"),
            "data:image/png;base64,",
            "data:image/png;base64,iVBORw0KGgo",
            "data:image/svg+xml;base64,PHN2ZyB3aWR0aD0iMyIgaGVpZ2h0PSIyIi8+",
        ] {
            assert_eq!(pixels(url), None, "{url}");
        }
        // Decoders that pass over other letters would see other bytes than we.
        for letter in ["\n", " ", "-", "_", "=", "%2B", "é"] {
            let (start, end) = data.split_at(20);
            assert_eq!(pixels(&format!("data:image/png;base64,{start}{letter}{end}")), None, "{letter:?}");
        }
    }

    #[test]
    fn a_png_has_one_header_and_it_comes_first() {
        let (data, text) = (chunk(*b"IDAT", b"x"), chunk(*b"tEXt", &[0; 5_000]));
        let seen = |width, height| png_of(&[header(width, height), text.clone(), data.clone()]);
        assert_eq!(seen(4_032, 3_024), Some(Pixels { width: 4_032, height: 3_024 }));
        assert_eq!(seen(u32::MAX, u32::MAX), Some(Pixels { width: u32::MAX, height: u32::MAX }));
        assert_eq!((seen(0, 1), seen(1, 0)), (None, None));
        assert_eq!(png_of(&[header(1, 1), header(9_000, 9_000), data.clone()]), None);
        assert_eq!(png_of(&[text.clone(), header(1, 1), data.clone()]), None);
        assert_eq!(png_of(&[header(1, 1), text.clone()]), None);
        // A chunk that says to be 4 GiB.
        assert_eq!(png_of(&[header(1, 1), b"\xFF\xFF\xFF\xFFtEXt".to_vec(), data]), None);
    }

    #[test]
    fn a_jpegs_size_may_come_late_and_only_once() {
        let (scan, preview) = (segment(0xDA, &[0; 6]), segment(0xE1, &[b"Exif\0\0".to_vec(), frame(9, 9)].concat()));
        let tables = segment(0xC4, &[0; 30]);
        let found = Some(Pixels { width: 4_032, height: 3_024 });
        assert_eq!(jpeg_of(&[preview.clone(), tables.clone(), frame(4_032, 3_024), tables, scan.clone()]), found);
        let late = |profiles| {
            let profile = segment(0xE2, &vec![0; 65_533]);
            jpeg_of(&[vec![profile; profiles].concat(), frame(4_032, 3_024), scan.clone()])
        };
        assert_eq!((late(3), late(4)), (found, None));
        for broken in [
            vec![frame(1, 1), frame(9_000, 9_000), scan.clone()],
            vec![frame(1, 1), segment(0xC2, &[8, 0, 9, 0, 9, 0]), scan.clone()],
            vec![frame(1, 0), scan.clone()],
            vec![scan.clone(), frame(1, 1)],
            vec![frame(1, 1)],
            vec![vec![0xFF], frame(1, 1), scan.clone()],
            vec![vec![0], frame(1, 1), scan.clone()],
            vec![vec![0xFF, 0xD8], frame(1, 1), scan.clone()],
            vec![vec![0xFF, 0xE0, 0, 1], frame(1, 1), scan.clone()],
            vec![segment(0xC0, &[8, 0, 1, 0]), frame(1, 1), scan],
        ] {
            assert_eq!(jpeg_of(&broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_gif_is_as_large_as_its_screen_or_its_first_picture() {
        let picture = |left: u8, wide: u8| [0x2C, left, 0, 0, 0, wide, 0, 7, 0, 0];
        assert_eq!(gif_of([5, 0, 4, 1], &[&[0, 0, 0][..], &picture(0, 3)].concat()), not_empty(5, 260));
        assert_eq!(gif_of([1, 0, 1, 0], &[&[0, 0, 0][..], &picture(200, 100)].concat()), not_empty(300, 7));
        // A colour table of four colours that looks like a picture, and a comment.
        let before = [&[0x81, 0, 0][..], &[0x2C; 12], &[0x21, 0xFE, 2, 0x2C, 0x2C, 1, 0x2C, 0]].concat();
        assert_eq!(gif_of([1, 0, 1, 0], &[&before[..], &picture(0, 3)].concat()), not_empty(3, 7));
        assert_eq!(gif_of([1, 0, 1, 0], &[0, 0, 0, 0x3B]), None);
        assert_eq!(gif_of([1, 0, 1, 0], &[0, 0, 0]), None);
        assert_eq!(pixels(&url(b"GIF88a\x01\0\x01\0\0\0\0\x2C\0\0\0\0\x01\0\x01\0\0")), None);
    }

    #[test]
    fn a_webp_is_as_large_as_its_first_chunk_says() {
        let seen = |chunk: &[u8]| pixels(&url(&[b"RIFF\0\0\0\0WEBP", chunk].concat()));
        assert_eq!(seen(b"VP8 \0\0\0\0\0\0\0\x9D\x01\x2A\xFF\xFF\x01\x40"), not_empty(0x3FFF, 1));
        assert_eq!(seen(b"VP8 \0\0\0\0\x01\0\0\x9D\x01\x2A\x01\0\x01\0"), None);
        assert_eq!(seen(b"VP8 \0\0\0\0\0\0\0\x9D\x01\x2B\x01\0\x01\0"), None);
        assert_eq!(seen(b"VP8L\0\0\0\0\x2F\xFF\xFF\xFF\xFF"), not_empty(0x4000, 0x4000));
        assert_eq!(seen(b"VP8L\0\0\0\0\x2E\xFF\xFF\xFF\xFF"), None);
        assert_eq!(seen(b"VP8X\0\0\0\0\0\0\0\0\xFF\xFF\xFF\0\0\0"), not_empty(1 << 24, 1));
        assert_eq!(seen(b"ALPH\0\0\0\0\0\0\0\0\xFF\xFF\xFF\0\0\0"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_answered(text in any::<String>(), head in prop::bool::ANY) {
            let _ = pixels(&if head { format!("data:;base64,{text}") } else { text });
        }

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600), magic in 0..IMAGES.len(), kept in 2..40_usize) {
            let mut image = decoded(magic);
            image.truncate(kept);
            image.extend(&bytes);
            let read = size(&mut &image[..]);
            prop_assert_eq!(pixels(&url(&image)), read);
            // What comes after the image changes nothing.
            if read.is_some() {
                image.extend(&bytes);
                prop_assert_eq!(pixels(&url(&image)), read);
            }
        }
    }
}
