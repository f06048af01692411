//! The tiers of service that providers sell the same model in.

use serde::{Deserialize, Serialize};

/// A tier of service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// What a call gets that asks for none.
    #[default]
    Standard,
    /// Slower and cheaper.
    Flex,
    /// Faster and dearer; some call it `fast`.
    Priority,
    /// The fastest.
    Ultrafast,
}

/// What each tier costs, in hundredths of the standard price; `None` where it has no price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tiers {
    /// `flex`. Without a price of its own it costs the standard price: too much is held, never too little.
    pub flex: Option<u64>,
    /// `priority` and `fast`.
    pub priority: Option<u64>,
    /// `ultrafast`.
    pub ultrafast: Option<u64>,
}

impl Tier {
    /// The tier that providers and requests call `name`; `None` if no such tier is known.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            // `scale` is paid for beforehand and billed at the standard price.
            "auto" | "default" | "standard" | "standard_only" | "scale" | "on_demand" => Some(Self::Standard),
            "flex" | "batch" => Some(Self::Flex),
            "priority" | "fast" => Some(Self::Priority),
            "ultrafast" => Some(Self::Ultrafast),
            _ => None,
        }
    }
}

impl Tiers {
    /// What a tier costs, in hundredths of the standard price.
    #[must_use]
    pub fn percent(&self, tier: Tier) -> u64 {
        let stated = match tier {
            Tier::Standard => None,
            Tier::Flex => self.flex,
            Tier::Priority => self.priority,
            Tier::Ultrafast => self.ultrafast,
        };
        stated.unwrap_or(100)
    }

    /// A tier that was asked for, unless it is cheaper than the standard one: a discount that a provider has not said that it
    /// gives is not counted on.
    #[must_use]
    pub fn unless_cheaper(&self, tier: Tier) -> Tier {
        if self.percent(tier) < self.percent(Tier::Standard) { Tier::Standard } else { tier }
    }

    /// Whether a request may ask for a tier: its price is known, or is not above the standard one.
    #[must_use]
    pub fn has_price(&self, tier: Tier) -> bool {
        match tier {
            Tier::Standard | Tier::Flex => true,
            Tier::Priority => self.priority.is_some(),
            Tier::Ultrafast => self.ultrafast.is_some(),
        }
    }
}
