//! The characters that a terminal can show, and what cells are drawn with.

use std::env;

/// Which characters may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Unicode,
    Ascii,
}

impl Charset {
    /// That of the environment: the first of LC_ALL, LC_CTYPE and LANG that is set decides, as it does for the C library.
    pub(crate) fn of_locale() -> Self {
        let set = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty());
        match set {
            Some(locale) => Self::of(&locale.to_string_lossy()),
            None => Charset::Ascii,
        }
    }

    fn of(locale: &str) -> Self {
        let locale = locale.to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") {
            Charset::Unicode
        } else {
            Charset::Ascii
        }
    }

    /// Shares of a cell, from a little to all of it.
    pub(crate) fn levels(self) -> [char; 8] {
        match self {
            Charset::Unicode => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Charset::Ascii => ['.', ':', '-', '=', '+', '*', '#', '@'],
        }
    }

    /// What a cell is drawn with that was busy for this share, from 0 to 1.
    pub(crate) fn level(self, share: f64) -> char {
        if share <= 0.0 {
            return ' ';
        }
        let eighths = (share * 8.0).ceil().clamp(1.0, 8.0) as usize;
        self.levels()[eighths - 1]
    }

    /// A cell with events that take no time.
    pub(crate) fn moment(self) -> char {
        match self {
            Charset::Unicode => '·',
            Charset::Ascii => '\'',
        }
    }

    /// A cell in which there was nothing but waits.
    pub(crate) fn wait(self) -> char {
        match self {
            Charset::Unicode => '┄',
            Charset::Ascii => '~',
        }
    }

    /// Where a time is written on the axis.
    pub(crate) fn tick(self) -> char {
        match self {
            Charset::Unicode => '│',
            Charset::Ascii => '|',
        }
    }

    /// A text in these characters. Of a unit's µ the u is left, and of °C the C.
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            Charset::Unicode => text.to_owned(),
            Charset::Ascii => text
                .chars()
                .filter(|char| *char != '°')
                .map(|char| match char {
                    'µ' | 'μ' => 'u',
                    '…' => '~',
                    '×' => 'x',
                    char if char.is_ascii() => char,
                    _ => '?',
                })
                .collect(),
        }
    }
}

/// A share from 0 to 1 in percent, rounded down: what is not all is not written as all.
pub(crate) fn percent(share: f64) -> String {
    // A share of 0.29 is a little less than that in binary.
    let tenths = (share * 1_000.0 + 1e-9).floor();
    if share > 0.0 && tenths < 1.0 {
        "<0.1 %".to_owned()
    } else {
        format!("{:.1} %", tenths / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_which_characters_there_are() {
        for locale in ["C.UTF-8", "de_DE.utf8", "en_US.UTF-8@euro"] {
            assert_eq!(Charset::of(locale), Charset::Unicode, "{locale}");
        }
        for locale in ["C", "POSIX", "de_DE.ISO-8859-1", ""] {
            assert_eq!(Charset::of(locale), Charset::Ascii, "{locale}");
        }
    }

    #[test]
    fn a_little_is_seen_and_all_is_full() {
        let shown = |share| Charset::Unicode.level(share);
        assert_eq!(
            [0.0, 1e-9, 0.125, 0.126, 0.5, 0.876, 1.0].map(shown),
            [' ', '▁', '▁', '▂', '▄', '█', '█']
        );
        assert_eq!(Charset::Ascii.level(1.0), '@');
    }

    #[test]
    fn percents_are_rounded_down() {
        assert_eq!(
            [0.0, 0.0004, 0.29, 0.9999, 1.0].map(percent),
            ["0.0 %", "<0.1 %", "29.0 %", "99.9 %", "100.0 %"]
        );
    }

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Charset::Ascii.text("3.50 µs ∀, 37 °C"), "3.50 us ?, 37 C");
    }
}
