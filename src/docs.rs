//! Pages about the whole program: the words, the modules, one request from start to end, the promises, and the changes.
//!
//! A newcomer reads [`architecture`] and [`one_campaign`] first, with [`glossary`] beside them. `README.md` says how to
//! use the program, `tests/README.md` how it is tested, and `.github/CONTRIBUTING.md` how to change it.

/// A page that can be read here and as a file.
///
/// The pages link to each other by name. At its end, the file of each page defines these names as links to files.
/// Markdown uses the first definition of a name. So the definitions here come first, and make the names links to
/// modules.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[doc = "[architecture]: crate::docs::architecture"]
        #[doc = "[changelog]: crate::docs::changelog"]
        #[doc = "[glossary]: crate::docs::glossary"]
        #[doc = "[one campaign]: crate::docs::one_campaign"]
        #[doc = "[promises]: crate::docs::promises"]
        #[doc = ""]
        #[doc = include_str!($file)]
        pub mod $name {}
    };
}

page!(architecture, "docs/architecture.md");
page!(changelog, "docs/changelog.md");
page!(glossary, "docs/glossary.md");
page!(one_campaign, "docs/one_campaign.md");
page!(promises, "docs/promises.md");
