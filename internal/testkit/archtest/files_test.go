package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// touching are the functions that run programs, or that make, remove or change files by path. A path can have been
// turned into something else by another user, which a folder that is held open ([os.Root], package private) cannot.
var touching = map[string][]string{
	"os":      {"RemoveAll", "Remove", "Create", "OpenFile", "Mkdir", "MkdirAll", "Rename", "WriteFile", "Chmod", "Truncate", "Link", "Symlink", "CreateTemp", "MkdirTemp", "StartProcess"},
	"os/exec": {"Command", "CommandContext"},
	"syscall": {"Exec", "ForkExec"},
}

// touches are all uses in product code, by package, function and call, with the reason for which a path is good enough.
var touches = map[string]string{
	"cmd/internal/cli writeFile os.OpenFile":                    "what the user names and is not a regular file, such as /dev/null: nothing is made or cut",
	"cmd/internal/rawcache Entry.Publish os.Rename":             "in the folder of the cache, to which nobody else may write, see Folder",
	"cmd/internal/rawcache Entry.Remove os.Remove":              "in the folder of the cache: unlink follows no link",
	"cmd/internal/rawcache Entry.evict os.OpenFile":             "in the folder of the cache, to which nobody else may write, see Folder",
	"cmd/internal/rawcache Entry.run exec.CommandContext":       "the program of this release, or the one that the user names; no shell",
	"cmd/internal/demo draw os.MkdirAll":                        "the folders above that of the demo, which the user names",
	"cmd/internal/demo show exec.Command":                       "the desktop's program to open the page that was just written; no shell",
	"cmd/internal/doctor python exec.Command":                   "the Python of PATH, with a built-in program; no shell",
	"cmd/internal/loadbench createLog os.Create":                "the file that the user names with --log, as a shell's > does",
	"cmd/internal/loadbench subject.close os.RemoveAll":         "the folder of subject.store, which os.MkdirTemp made",
	"cmd/internal/loadbench subject.store os.MkdirTemp":         "a name that cannot be guessed, mode 0700",
	"cmd/internal/man write os.MkdirAll":                        "builds the manual pages of a release; users do not run it",
	"cmd/internal/man write os.WriteFile":                       "as above",
	"prepare/internal/commit/part MakeFolder os.MkdirAll":       "the folders above DEST, which the user names; the last one is made through an os.Root",
	"prepare removeEmpty os.Remove":                             "empty folders that this run has made above DEST: unlink and rmdir follow no link and remove no content",
	"prepare/internal/commit/part Remove os.Rename":             "renames, and follows no link; what is removed then is opened first, see private.RemoveOwn",
	"prepare Config.removeSkipped os.Remove":                    "one file, by the name of DEST: unlink follows no link",
	"prepare/internal/commit/upload Buckets.takeTurn os.Remove": "one file, by the name of a part: unlink follows no link",
	"prepare/internal/commit/upload closeSpool os.Remove":       "empty folders that this run has made: unlink and rmdir follow no link and remove no content",
	"internal/vfs openMember os.OpenFile":                       "the folder of a dataset, by O_PATH; its files are opened beneath it",
	"internal/vfs OpenFolder os.OpenFile":                       "for reading; it makes and cuts nothing",
	"internal/vfs OpenRegular os.OpenFile":                      "for reading; it makes and cuts nothing",
	"internal/vfs Root.open os.OpenFile":                        "for reading what the user named, or with --outside; other paths go through the os.Root",
	"internal/sys/private Move os.Rename":                       "systems without renameat, where links need a privilege",
	"internal/sys/private UserFolder os.MkdirAll":               "the folder --spool, which the user names, or the system's",
	"remote/mirror makeCache os.MkdirAll":                       "the cache, which the user names, or the user's own; who owns it is checked then",
	"remote/mirror removeIdle os.OpenFile":                      "in the cache, to which nobody else may write, see makeCache",
	"remote/mirror removeIdle os.RemoveAll":                     "in the cache, to which nobody else may write, see makeCache; it follows no link",
	"remote/mirror removeIdle os.Rename":                        "in the cache, to which nobody else may write, see makeCache",
	"store/write/bucket Home.Spool os.Remove":                   "empty folders that this process has made: unlink and rmdir follow no link and remove no content",
	"store/write OpenStage os.MkdirAll":                         "the folders above the destination, which the user names",
	"store/write Folder.Link os.Link":                           "to a path of Stage.Through; a link to a file of another user is a copy, see the kernel's protected_hardlinks",
	"store/hdf5 encoded.chunks os.OpenFile":                     "a path of Stage.Through, which leads through an open folder; nothing is made",
	"store/hdf5 encoded.complete os.OpenFile":                   "a path of Stage.Through, which leads through an open folder; nothing is made",
	"store/hdf5 encoded.create os.OpenFile":                     "a path of Stage.Through, with O_EXCL",
	"store/hdf5 file.close os.Truncate":                         "a path of Stage.Through: the file that libhdf5 has just made there",
	"store/hdf5 staged.open os.OpenFile":                        "a path of Stage.Through, which leads through an open folder; nothing is made",
}

// notProduct are the folders whose programs users do not run: tests, benchmarks, generators and examples.
func notProduct(dir string) bool {
	for _, d := range []string{"bench", "examples", "python", "testdata", "internal/testkit", "cmd/internal/s3test"} {
		if dir == d || strings.HasPrefix(dir, d+"/") {
			return true
		}
	}
	return strings.Contains(dir, "/_") || strings.HasPrefix(filepath.Base(dir), ".") && dir != "."
}

// eachProductFile parses what notProduct leaves but for tests.
func eachProductFile(t *testing.T, f func(dir string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, "../../.."), "/"))
		switch {
		case d.IsDir() && rel != "" && notProduct(rel):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err == nil {
			f(filepath.ToSlash(filepath.Dir(rel)), file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every use has its reason in the table, and no reason is left of a use that is gone.
func TestFilesAreTouchedForAReason(t *testing.T) {
	found := make(map[string]bool)
	eachProductFile(t, func(dir string, file *ast.File) {
		for _, use := range uses(file) {
			found[dir+" "+use] = true
		}
	})
	for _, use := range slices.Sorted(maps.Keys(found)) {
		if touches[use] == "" {
			t.Errorf("%q has no reason: use an os.Root (see internal/sys/private), or say in the table why a path is good enough", use)
		}
	}
	for _, use := range slices.Sorted(maps.Keys(touches)) {
		if !found[use] {
			t.Errorf("%q is gone: take it out of the table", use)
		}
	}
}

// uses lists the calls, and mentions, of a file as "function package.Name".
func uses(file *ast.File) (list []string) {
	names := make(map[string]string) // import paths by the name in this file
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndexByte(path, '/')+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		if touching[path] != nil {
			names[name] = path
		}
	}
	for _, d := range file.Decls {
		in := "var"
		if f, ok := d.(*ast.FuncDecl); ok {
			in = f.Name.Name
			if f.Recv != nil {
				in = receiver(f.Recv.List[0].Type) + "." + in
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(touching[names[x.Name]], s.Sel.Name) {
				list = append(list, in+" "+x.Name+"."+s.Sel.Name)
			}
			return true
		})
	}
	return list
}

func receiver(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	if index, ok := e.(*ast.IndexExpr); ok {
		e = index.X
	}
	return e.(*ast.Ident).Name
}

// opening are the functions that open or list what is at a path, whatever stands there by now.
var opening = map[string][]string{
	"os":                        {"Open", "OpenFile", "ReadFile", "ReadDir", "DirFS", "Readlink"},
	module + "/internal/vfs":    {"Open", "ReadFile", "ReadDir", "EachEntry", "WalkDir", "OpenRegular", "OpenFolder"},
	"path/filepath":             {"EvalSymlinks", "WalkDir", "Walk", "Glob"},
	"io/ioutil":                 {"ReadFile", "ReadDir"},
	"github.com/edsrzf/mmap-go": {"Map"},
}

// reading are the functions that read what is at a path, and may wait for it.
var reading = map[string][]string{
	"os":                     {"Open", "OpenFile", "ReadFile", "DirFS"},
	module + "/internal/vfs": {"Open", "ReadFile"},
	"io/ioutil":              {"ReadFile"},
}

// reads are the uses of reading in packages that open finished datasets, and of no file of theirs, with their reason.
var reads = map[string]string{
	"cmd/internal/feed peerEnviron os.ReadFile": "the environment of the client, in /proc",
	"loader/cuda shared os.ReadFile":            "the maps of this process, in /proc",
}

// A source opens files through its Root alone, which confines it to what the user named. What opens finished datasets
// does so by vfs.OpenIn and vfs.OpenRegular.
func TestFilesAreConfined(t *testing.T) {
	saved := touching
	defer func() { touching = saved }()
	sources, datasets, found := 0, 0, make(map[string]bool)
	eachProductFile(t, func(dir string, file *ast.File) {
		switch {
		case dir == "prepare/source" || strings.HasPrefix(dir, "prepare/source/"):
			sources++
			touching = opening
			for _, use := range uses(file) {
				t.Errorf("%s %s: use the Root of the source, see internal/vfs", dir, use)
			}
		case slices.ContainsFunc([]string{"store", "mmapds", "loader", "internal/layout", "internal/zarr", "internal/sys/mmap",
			"internal/sys/lease", "cmd/internal/feed", "cmd/internal/inspect"}, func(d string) bool {
			return dir == d || strings.HasPrefix(dir, d+"/")
		}):
			datasets++
			touching = reading
			for _, use := range uses(file) {
				use = dir + " " + use
				found[use] = true
				if touches[use] == "" && reads[use] == "" {
					t.Errorf("%s: use vfs.OpenIn, or vfs.OpenRegular for what the user names", use)
				}
			}
		}
	})
	for use := range reads {
		if !found[use] {
			t.Errorf("%q is gone: take it out of the table", use)
		}
	}
	if sources < 50 || datasets < 100 {
		t.Errorf("%d files of sources and %d of what opens datasets were looked at", sources, datasets)
	}
}
