//! Type-checks a tree of Luau modules. All of it happens in C++, where Luau's checker lives; this
//! hands over the arguments and links the libraries that `luau-analyze` builds.

use std::{
    env,
    ffi::{CString, c_char, c_int},
    process::exit,
};

unsafe extern "C" {
    /// `argv` as in C's `main`; the result is the exit code. See `check.cpp`.
    fn luau_check(argc: c_int, argv: *const *const c_char) -> c_int;
}

fn main() {
    // Without a use of it the linker drops the crate, and Luau's libraries with it.
    drop(luau_analyze::CancellationToken::new());

    let arguments: Vec<CString> =
        env::args().map(|argument| CString::new(argument).expect("an argument holds no NUL")).collect();
    let pointers: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    let count = c_int::try_from(pointers.len()).expect("few arguments");
    // SAFETY: `arguments` outlives the call, and `count` pointers to C strings are passed.
    exit(unsafe { luau_check(count, pointers.as_ptr()) });
}
