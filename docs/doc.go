// Package docs tests what README.md and the pages next to this file print: commands and programs
// run in an empty folder, Go compiles, links lead somewhere, names exist. It has tests only.
package docs
