//! Where a subject's object is made: near its first caller.
//!
//! Invariant: a hint counts only when an object is made, so a wrong guess costs milliseconds and nothing else.

/// The platform's hint for a caller's place, from its continent code, its longitude and its country code. `None` where
/// the platform does not say enough.
#[must_use]
pub fn location_hint(continent: &str, longitude: Option<&str>, country: &str) -> Option<&'static str> {
    /// East of here North America counts as east.
    const EAST_OF: f64 = -100.0;
    /// East of here Europe counts as east.
    const EAST_EUROPE_OF: f64 = 16.0;
    const MIDDLE_EAST: [&str; 15] =
        ["AE", "BH", "CY", "IL", "IQ", "IR", "JO", "KW", "LB", "OM", "PS", "QA", "SA", "SY", "YE"];
    let longitude: Option<f64> = longitude.and_then(|degrees| degrees.parse().ok());
    let is_east = |border: f64| longitude.is_none_or(|degrees| degrees > border);
    Some(match continent {
        _ if MIDDLE_EAST.contains(&country) => "me",
        "NA" if is_east(EAST_OF) => "enam",
        "NA" => "wnam",
        "SA" => "sam",
        "EU" if longitude.is_some() && is_east(EAST_EUROPE_OF) => "eeur",
        "EU" => "weur",
        "AS" => "apac",
        "OC" => "oc",
        "AF" => "afr",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_placed_by_continent_longitude_and_country() {
        let places = [
            ("NA", Some("-122.4"), "US", Some("wnam")),
            ("NA", Some("-74.0"), "US", Some("enam")),
            ("NA", None, "US", Some("enam")),
            ("EU", Some("2.3"), "FR", Some("weur")),
            ("EU", Some("30.5"), "UA", Some("eeur")),
            ("EU", Some("not a number"), "FR", Some("weur")),
            ("AS", Some("46.7"), "SA", Some("me")),
            ("AS", Some("139.7"), "JP", Some("apac")),
            ("SA", None, "BR", Some("sam")),
            ("OC", None, "NZ", Some("oc")),
            ("AF", None, "KE", Some("afr")),
            ("AN", None, "AQ", None),
            ("", None, "", None),
        ];
        for (continent, longitude, country, hint) in places {
            assert_eq!(location_hint(continent, longitude, country), hint, "{continent} {longitude:?} {country}");
        }
    }
}
