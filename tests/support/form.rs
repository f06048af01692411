//! Forms as clients write them.

/// The content type of all of them.
pub(crate) const KIND: &str = "multipart/form-data; boundary=tollgate";

/// A form that is being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form(Vec<u8>);

impl Form {
    /// With one more part.
    pub(crate) fn part(mut self, head: &str, content: &[u8]) -> Self {
        self.0.extend_from_slice(format!("--tollgate\r\n{head}\r\n\r\n").as_bytes());
        self.0.extend_from_slice(content);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    pub(crate) fn text(self, name: &str, text: &str) -> Self {
        self.part(&format!("Content-Disposition: form-data; name=\"{name}\""), text.as_bytes())
    }

    /// With a file of so many bytes, all of which occur.
    pub(crate) fn file(self, name: &str, file: &str, size: usize) -> Self {
        let content: Vec<u8> = (0..=255).cycle().take(size).collect();
        let head = format!("Content-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"");
        self.part(&format!("{head}\r\nContent-Type: application/octet-stream"), &content)
    }

    /// All of it.
    pub(crate) fn end(&self) -> Vec<u8> {
        [&self.0[..], b"--tollgate--\r\n"].concat()
    }
}
