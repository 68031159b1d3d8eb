// Package ctime reads when a file's content or attributes were changed last, which programs cannot set: a file that
// replaces another one with its size and its time of modification has another time of change.
package ctime

import "io/fs"

// Of returns the time of change in nanoseconds, of what package os reports; 0 if the system has none.
func Of(info fs.FileInfo) int64 { return of(info) }
