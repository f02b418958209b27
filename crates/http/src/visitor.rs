//! Telling previews and crawlers from people, by what they say of themselves.
//!
//! A messenger that unfurls a link, or a fediverse post that a thousand servers fetch, is not a thousand readers
//! (shlinkio/shlink#900, dubinc/dub#1860); nor is a browser that fetches a link before anybody has followed it. Such
//! visits are redirected like any other and counted apart. A program that calls itself a browser is not recognised; a
//! visit without a `User-Agent` counts as a person's.

use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName};

/// Who clicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visitor {
    Human,
    /// A preview or a crawler, by its own word.
    Program,
}

impl Visitor {
    /// By the headers of the request.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let program = headers.get(USER_AGENT).is_some_and(|agent| is_program(agent.as_bytes()));
        if program || is_ahead_of_time(headers) { Self::Program } else { Self::Human }
    }
}

/// Where browsers say that nobody has asked for the page yet: `Sec-Purpose` (the Fetch standard) and what came
/// before it: of Chrome and Safari, of Firefox, and of Safari's previews.
static PURPOSES: [HeaderName; 4] = [
    HeaderName::from_static("sec-purpose"),
    HeaderName::from_static("purpose"),
    HeaderName::from_static("x-moz"),
    HeaderName::from_static("x-purpose"),
];

/// The values that say so, alone or with parameters (`prefetch;prerender`).
const AHEAD_OF_TIME: [&[u8]; 3] = [b"prefetch", b"prerender", b"preview"];

fn is_ahead_of_time(headers: &HeaderMap) -> bool {
    PURPOSES.iter().flat_map(|name| headers.get_all(name)).any(|value| {
        value
            .as_bytes()
            .split(|byte| matches!(byte, b';' | b','))
            .any(|part| AHEAD_OF_TIME.iter().any(|word| part.trim_ascii().eq_ignore_ascii_case(word)))
    })
}

/// Words in a `User-Agent`, in lower case. `bot` covers Googlebot, bingbot, Twitterbot, LinkedInBot, Slackbot,
/// TelegramBot, Discordbot, Applebot, AhrefsBot and hundreds more; `+http` is how crawlers give their address.
const WORDS: [&[u8]; 28] = [
    b"bot",
    b"crawl",
    b"spider",
    b"slurp",
    b"preview",
    b"+http",
    b"facebookexternalhit",
    b"facebookcatalog",
    b"meta-external",
    b"whatsapp",
    b"skypeuri",
    b"embedly",
    b"quora link",
    b"pinterest/",
    b"vkshare",
    b"w3c_validator",
    b"mastodon",
    b"pleroma",
    b"akkoma",
    b"misskey",
    b"friendica",
    b"lemmy",
    b"fediverse",
    b"headlesschrome",
    b"lighthouse",
    b"feedfetcher",
    b"mediapartners",
    b"bitlybot",
];

/// Longer ones are looked at as far as this.
const LENGTH_MAX: usize = 512;

/// Words by their first letter, so that one pass over the text suffices.
const BY_FIRST: [u32; 256] = {
    let mut masks = [0u32; 256];
    let mut word = 0;
    while word < WORDS.len() {
        masks[WORDS[word][0] as usize] |= 1 << word;
        word += 1;
    }
    masks
};

/// Whether this is a preview's or a crawler's `User-Agent`.
fn is_program(user_agent: &[u8]) -> bool {
    let text = &user_agent[..user_agent.len().min(LENGTH_MAX)];
    (0..text.len()).any(|start| {
        let mut candidates = BY_FIRST[usize::from(text[start].to_ascii_lowercase())];
        while candidates != 0 {
            let word = WORDS[candidates.trailing_zeros() as usize];
            if text.get(start..start + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word)) {
                return true;
            }
            candidates &= candidates - 1;
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a5_77_previews_and_crawlers_are_told_from_browsers() {
        for agent in [
            "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
            "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
            "Twitterbot/1.0",
            "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
            "TelegramBot (like TwitterBot)",
            "WhatsApp/2.23.20.0",
            "Mastodon/4.2.0 (http.rb/5.1.1; +https://mastodon.example/) Bot",
            "http.rb/5.1.1 (Mastodon/4.2.0; +https://mastodon.example/)",
            "Mozilla/5.0 AppleWebKit/605.1.15 (KHTML, like Gecko) Version/16.4 Safari/605.1.15 SkypeUriPreview",
            "LinkedInBot/1.0",
            "YandexBot/3.0",
        ] {
            assert!(is_program(agent.as_bytes()), "{agent}");
        }
        for agent in [
            "",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1",
            "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0",
            "curl/8.5.0",
            "Opera/9.80 (J2ME/MIDP; Opera Mini/9.80) Presto/2.12",
        ] {
            assert!(!is_program(agent.as_bytes()), "{agent}");
        }
    }

    #[test]
    fn a5_77_what_a_browser_fetches_before_anybody_asked_is_not_a_person() {
        let of = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(
                USER_AGENT,
                "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Firefox/125.0".parse().unwrap(),
            );
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
            Visitor::of(&headers)
        };
        for (name, value) in [
            ("sec-purpose", "prefetch"),
            ("sec-purpose", "prefetch;prerender"),
            ("sec-purpose", "prefetch; anonymous-client-ip"),
            ("sec-purpose", "PREFETCH"),
            ("purpose", "prefetch"),
            ("purpose", "preview"),
            ("x-purpose", "preview"),
            ("x-moz", "prefetch"),
        ] {
            assert_eq!(of(name, value), Visitor::Program, "{name}: {value}");
        }
        for (name, value) in
            [("sec-purpose", ""), ("purpose", "prefetching"), ("x-moz", "none"), ("accept", "prefetch")]
        {
            assert_eq!(of(name, value), Visitor::Human, "{name}: {value}");
        }
        assert_eq!(Visitor::of(&HeaderMap::new()), Visitor::Human);
    }

    #[test]
    fn a_word_at_the_end_and_beyond_the_limit() {
        assert!(is_program(b"xbot"));
        assert!(!is_program(b"xbo"));
        let mut long = vec![b'x'; LENGTH_MAX];
        long.extend_from_slice(b"bot");
        assert!(!is_program(&long));
    }
}
