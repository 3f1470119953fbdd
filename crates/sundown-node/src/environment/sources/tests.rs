//! Settings of pip and uv, and the places that packages come from by them.

use super::*;

const HOME: (&str, &str) = ("HOME", "/home/me");

fn given(variables: &[(&str, &str)]) -> Variables {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    variables.iter().map(own).collect()
}

fn reading<'a>(files: &'a [(&str, &str)]) -> impl Fn(&Path) -> Option<String> + 'a {
    let of = |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path);
    move |path| of(path).map(|(_, text)| (*text).to_owned())
}

fn pip(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Vec<String> {
    of_pip(&given(variables), reading(files)).0
}

fn uv(variables: &[(&str, &str)], files: &[(&str, &str)]) -> Vec<String> {
    of_uv(&given(variables), reading(files)).0
}

#[test]
fn without_settings_both_take_the_usual_index_and_it_is_not_in_the_key() {
    let nothing = of_pip(&given(&[HOME]), reading(&[]));
    assert_eq!(nothing, of_uv(&given(&[HOME]), reading(&[])));
    assert_eq!(nothing.key().count(), 0);
    assert!(Sources::is_usual(nothing.list()));
    // One place, with a slash at its end or without.
    assert_eq!(
        pip(&[("PIP_INDEX_URL", "https://a.example/")], &[]),
        ["https://a.example"]
    );
    let other = of_pip(
        &given(&[("PIP_INDEX_URL", "https://a.example")]),
        reading(&[]),
    );
    let key: Vec<String> = other.key().collect();
    assert_eq!(key, ["from https://a.example"]);
}

#[test]
fn variables_of_pip_stand_before_its_files_and_a_command_before_all() {
    let file = "[global]\nindex-url = https://a.example/simple\nextra_index_url =\n    https://b.example\n    \
                https://c.example\n[install]\nfind-links: /opt/wheels\n# index-url = https://no.example\n";
    let user = ("/home/me/.config/pip/pip.conf", file);
    let (a, b, c, links) = (
        "https://a.example/simple",
        "https://b.example",
        "https://c.example",
        "/opt/wheels",
    );
    assert_eq!(pip(&[HOME], &[user]), [a, b, c, links]);
    let variable = ("PIP_INDEX_URL", "https://v.example");
    assert_eq!(
        pip(&[HOME, variable], &[user]),
        ["https://v.example", b, c, links]
    );
    let everybody = ("/etc/pip.conf", "[install]\nindex-url=https://e.example\n");
    assert_eq!(
        pip(&[HOME], &[everybody, user]),
        ["https://e.example", b, c, links]
    );
    let none = ("PIP_NO_INDEX", "1");
    assert_eq!(pip(&[HOME, none], &[user]), [links]);
    let no_files = ("PIP_CONFIG_FILE", "/dev/null");
    assert_eq!(pip(&[HOME, no_files], &[everybody, user]), [USUAL]);
}

#[test]
fn settings_of_uv_are_read_from_variables_and_the_users_file() {
    let file = "index-url = \"https://a.example/simple\"\nextra-index-url = [\"https://b.example\"]\n\
                [[index]]\nname = \"acme\"\nurl = \"https://c.example\"\n\
                [[index]]\nname = \"pinned\"\nurl = \"https://no.example\"\nexplicit = true\n\
                [pip]\nfind-links = [\"/opt/wheels\"]\n";
    let user = ("/home/me/.config/uv/uv.toml", file);
    let expect = [
        "https://c.example",
        "https://b.example",
        "https://a.example/simple",
        "/opt/wheels",
    ];
    assert_eq!(uv(&[HOME], &[user]), expect);
    let variables = [
        HOME,
        ("UV_INDEX", "acme=https://x.example https://y.example"),
        ("UV_DEFAULT_INDEX", "https://z.example"),
        ("UV_NO_CONFIG", "1"),
    ];
    assert_eq!(
        uv(&variables, &[user]),
        [
            "https://x.example",
            "https://y.example",
            "https://z.example"
        ]
    );
    let elsewhere = ("UV_CONFIG_FILE", "/etc/mine.toml");
    let mine = (
        "/etc/mine.toml",
        "[[index]]\nurl = \"https://m.example\"\ndefault = true\n",
    );
    assert_eq!(uv(&[HOME, elsewhere], &[user, mine]), ["https://m.example"]);
    let broken = ("/home/me/.config/uv/uv.toml", "index-url = ");
    assert_eq!(uv(&[HOME], &[broken]), [USUAL]);
}

#[test]
fn names_and_passwords_are_no_part_of_an_address() {
    for (url, expect) in [
        (
            "https://user:word@a.example/simple",
            "https://a.example/simple",
        ),
        ("https://token@a.example:8443", "https://a.example:8443"),
        ("https://us@er:wo@rd@a.example/x@y", "https://a.example/x@y"),
        (
            "https://a.example/simple?x=@y",
            "https://a.example/simple?x=@y",
        ),
        ("acme=https://u:p@a.example", "acme=https://a.example"),
        ("user:word@a.example/simple", "a.example/simple"),
        ("/opt/wheels@2", "/opt/wheels@2"),
        ("", ""),
    ] {
        let told = without_userinfo(url);
        assert_eq!(told, expect, "{url}");
    }
    for (line, expect) in [
        (
            "Looking in indexes: https://u:p@a.example/simple, https://b.example",
            "Looking in indexes: https://a.example/simple, https://b.example",
        ),
        (
            "Downloading https://a.example/x.whl?token=word (3 kB)",
            "Downloading https://a.example/x.whl (3 kB)",
        ),
        ("  what is this?", "  what is this?"),
        ("at https://me:p#s?s@a.example/x", "at https://a.example/x"),
        (
            "https://a.example/x,https://u:p@b.example",
            "https://b.example",
        ),
    ] {
        assert_eq!(bare(line), expect);
    }
    let secret = ("PIP_EXTRA_INDEX_URL", "https://u:word@b.example");
    assert_eq!(pip(&[secret], &[]), [USUAL, "https://b.example"]);
}
