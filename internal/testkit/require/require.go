// Package require ends tests at an error, in one line.
package require

import "testing"

// NoError ends the test, as t.Fatal does, if err is an error.
func NoError(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
