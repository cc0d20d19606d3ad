use super::*;

#[test]
fn a_token_file_appears_whole_and_private_or_not_at_all() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    drop(NewTokenFile::beside(&path).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    std::fs::write(&path, "old").unwrap();
    NewTokenFile::beside(&path).unwrap().keep("abc").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "abc\n");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read_token(Some(&path)).unwrap().as_str(), "abc");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(NewTokenFile::beside(Path::new("/no/such/folder/token")).is_err());
}
