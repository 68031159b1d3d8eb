package shell

import "fmt"

// longest bounds the text of an error, in bytes: it quotes names of files, fields and classes, and lists of them.
const longest = 8000

// Bounded returns an error whose text is short enough to read: the middle of a longer one is left out. It unwraps to
// err.
func Bounded(err error) error {
	if err == nil || len(err.Error()) <= longest {
		return err
	}
	return bounded{err}
}

type bounded struct{ error }

func (b bounded) Unwrap() error { return b.error }

// Error returns the beginning and the end of a text that is too long for a terminal: the beginning says where, and the
// end usually has the cause.
func (b bounded) Error() string {
	text := b.error.Error()
	first, last := text[:longest/2], text[len(text)-longest/4:]
	return fmt.Sprintf("%s ... (%d bytes are left out) ... %s", first, len(text)-len(first)-len(last), last)
}
