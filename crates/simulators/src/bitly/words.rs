//! The words that accounts are made of: titles in many scripts, hosts, paths, tags, back-halves.

/// Back-halves people choose: without `-` and `_`, in NFC, none beginning with a digit.
pub(super) const BACK_HALVES: &[&str] = &[
    "Sale",
    "spring",
    "Summer2025",
    "news",
    "Jobs",
    "webinar",
    "QR",
    "menu",
    "GitHub",
    "app",
    "blackfriday",
    "tickets",
    "größe",
    "café",
    "日本語",
    "구글",
    "пример",
    "🚀",
    "été",
    "naïve",
    "Ωmega",
    "ไทย",
    "مثال",
    "Zürich",
];

/// Titles as pages have them; a number follows most of them.
pub(super) const TITLES: &[&str] = &[
    "Spring sale",
    "How to say \"hello\" in 12 languages",
    "C:\\temp\\new folder – a guide",
    "It's 100 % free & <b>easy</b> &amp; quick",
    "Frühjahrsangebote für Große & Kleine",
    "Économisez jusqu’à 50 % — dès aujourd’hui",
    "春のセール開催中「最大半額」",
    "봄맞이 세일",
    "春季大促销：全场五折",
    "Весенняя распродажа «до −50 %»",
    "تخفيضات الربيع",
    "מבצע אביב",
    "วันหยุดสุดสัปดาห์",
    "वसन्त सेल",
    "🚀 Launch day 👩‍👩‍👧‍👦🇩🇪",
    "Line one\nline two\ttabbed",
    "Trailing spaces   ",
    "{\"json\":\"in a title\",\"n\":[1,2]}",
    "a\u{301}ccent as two signs (NFD)",
    "Separator\u{2028}inside, and a bell \u{7}",
    "\\u0041 is not an escape here",
    "null",
    "O’Reilly \"quoted\" \\\"twice\\\"",
    "x",
];

pub(super) const TAGS: &[&str] = &[
    "mail",
    "q1",
    "q2",
    "Newsletter",
    "social",
    "print",
    "Ünïcode",
    "日本",
    "a,b",
    "a|b",
    "two words",
    "🚀",
    "paid",
    "\"quoted\"",
    "campaign:2025",
    "x/y",
];

pub(super) const HOSTS: &[&str] = &[
    "www.example.com",
    "shop.example.com",
    "blog.example.org",
    "docs.example.net",
    "example.com",
    "news.example.org",
    "example.com:8443",
];

/// International hosts and what a header carries instead (RFC 5891).
pub(super) const INTERNATIONAL_HOSTS: &[(&str, &str)] = &[
    ("bücher.example", "xn--bcher-kva.example"),
    ("münchen.example", "xn--mnchen-3ya.example"),
    ("例え.example", "xn--r8jz45g.example"),
    ("пример.example", "xn--e1afmkfd.example"),
];

pub(super) const PATHS: &[&str] = &[
    "sale",
    "products/shoes",
    "2025/03/how-to-move",
    "en-GB/pricing",
    "a/b/c/d.html",
    "watch",
    "p",
    "index.php",
    "careers/rust",
    "events/spring",
];

/// Paths outside ASCII; Bitly stores them unescaped.
pub(super) const RAW_PATHS: &[&str] =
    &["产品/鞋", "größe/straße", "カテゴリ/靴", "café/été", "товары", "🚀/launch", "a b/c d"];

pub(super) const COUNTRIES: &[&str] = &["DE", "FR", "US", "JP", "BR", "IN", "GB"];
