package shell

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Penstock returns a command line of this project, such as "preprocess merge" with the word DEST, under a name that is
// installed: "inspect ds" in the program inspect and the programs next to it, and "penstock inspect ds" in penstock
// and in every program that imports this module. The command is not quoted, and words are quoted as by [Command].
func Penstock(command string, words ...string) string {
	return Command(started()+command, words...)
}

// On returns the line of a command about one path; the line has PATH where the name cannot be printed.
func On(command, name string) string {
	return cmp.Or(Penstock(command, name), Penstock(command+" PATH"))
}

// Rewrite returns the command line that makes a dataset of the file, folder or dataset at a path or URL: a folder
// next to it whose name ends in -flat. The words of flags, "" for none, are not quoted. Where the name cannot be
// printed, the line says SOURCE and DEST.
func Rewrite(name, flags string) string {
	at, query, options := strings.Cut(name, "?")
	at = strings.TrimSuffix(at, path.Ext(at)) + "-flat"
	if options {
		at += "?" + query
	}
	line := cmp.Or(Penstock("preprocess", name, at), Penstock("preprocess SOURCE DEST"))
	if flags != "" {
		line += " " + flags
	}
	return line
}

// started is the prefix of a command, from this program's name.
var started = sync.OnceValue(func() string {
	info, _ := debug.ReadBuildInfo()
	return before(os.Args[0], info)
})

// before returns "" for the programs that are one command each, and else "penstock ".
func before(program string, info *debug.BuildInfo) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if info != nil && info.Main.Path == "github.com/penstock/penstock" &&
		slices.Contains([]string{"preprocess", "inspect", "loadbench", "feed"}, name) {
		return ""
	}
	return "penstock "
}
