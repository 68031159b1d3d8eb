package docs

import (
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/internal/testkit/commands"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// block is a fenced piece of a page.
type block struct {
	page string
	line int    // of its first line of text
	lang string // sh, python, go, ...
	skip string // why it is not run: the text after "skip:" in the line that opens it
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", filepath.Base(b.page), b.line) }

var fence = regexp.MustCompile("^( *)```([a-z]*) *(skip:(.*))?$")

// pages returns the paths of README.md, of the pages of this folder and of python/README.md.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("*.md")
	if err != nil || len(list) == 0 {
		t.Fatalf("%d pages, error %v", len(list), err)
	}
	return append(list, "../README.md", "../python/README.md")
}

// blocks returns the fenced pieces of a page in order.
func blocks(t *testing.T, page string) (list []block) {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	var open *block
	for i, line := range strings.Split(string(data), "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case open != nil && m != nil && m[2] == "":
			list, open = append(list, *open), nil
		case open != nil:
			open.text += line + "\n"
		case m != nil:
			open = &block{page: page, line: i + 2, lang: m[2], skip: strings.TrimSpace(m[4])}
		}
	}
	if open != nil {
		t.Errorf("%s: the block is not closed", open)
	}
	return list
}

// tools builds penstock and returns a PATH that begins with its folder.
func tools(t *testing.T) string {
	t.Helper()
	return commands.Build(t, "..", "penstock") + string(filepath.ListSeparator) + os.Getenv("PATH")
}

// prepared are commands that make the datasets that a page takes as given.
var prepared = map[string]string{
	"format.md": "penstock preprocess photos ds --resize 16x16 --quiet; penstock preprocess ds ds.h5 --quiet",
	"gpu.md":    "penstock preprocess photos ds --resize 16x16 --normalize imagenet --quiet",
	"python.md": "penstock preprocess photos data/photos --keep-encoded --quiet; penstock preprocess photos data/train --resize 16x16 --normalize imagenet --quiet",
}

// prelude declares what Python programs of the pages leave to the reader.
const prelude = "rank, world_size, checkpoint = 0, 1, {}\ndef train_step(*tensors): pass\n"

// folder returns an empty folder with the raw samples that pages speak of: the image folder
// photos, and samples.csv.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "photos"), os.DirFS("../testdata/raw")))
	var csv strings.Builder
	csv.WriteString("age,height,outcome\n")
	for i := range 200 {
		fmt.Fprintf(&csv, "%d,%.1f,%s\n", 20+i%50, 150+float64(i%40), []string{"no", "yes"}[i%2])
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "samples.csv"), []byte(csv.String()), 0o644))
	return dir
}

// Every command and every Python program of a page runs, in order, in a folder of its own.
func TestPagesRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the pages' commands are for a shell of Unix")
	}
	path := tools(t)
	python, packages := pythontest.Need(t, "import numpy"), mustAbs(t, "../python")
	for _, page := range pages(t) {
		list := slices.DeleteFunc(blocks(t, page), func(b block) bool { return b.lang != "sh" && b.lang != "python" })
		if len(list) == 0 {
			continue
		}
		t.Run(strings.TrimPrefix(page, "../"), func(t *testing.T) {
			t.Parallel() // programs wait for disks and for workers
			dir := folder(t)
			env := append(os.Environ(), "PATH="+path, "PYTHONPATH="+packages, "PYTHONDONTWRITEBYTECODE=", "XDG_CACHE_HOME="+t.TempDir(),
				"OMP_NUM_THREADS=1")
			if text, ok := prepared[filepath.Base(page)]; ok {
				cmd := exec.Command("bash", "-euo", "pipefail", "-c", text)
				cmd.Dir, cmd.Env = dir, env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			for _, b := range list {
				if b.skip != "" {
					t.Logf("%s is not run: %s", b, b.skip)
					continue
				}
				cmd := exec.Command("bash", "-euo", "pipefail", "-c", b.text)
				if b.lang == "python" {
					if missing := needs(python, b.text); missing != "" {
						t.Logf("%s is not run: %s has no %s", b, python, missing)
						continue
					}
					cmd = exec.Command(python, "-c", prelude+b.text)
				}
				cmd.Dir, cmd.Env = dir, env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s\n%s", b, err, b.text, out)
				}
			}
		})
	}
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(path)
	require.NoError(t, err)
	return abs
}

var imported = regexp.MustCompile(`(?m)^\s*(?:import|from) ([a-z0-9_., ]+)`)

// needs returns the first module that a program imports and this Python does not have. Without
// output= a DataLoader yields tensors of torch.
func needs(python, program string) string {
	var modules []string
	for _, m := range imported.FindAllStringSubmatch(program, -1) {
		for _, name := range strings.Split(m[1], ",") {
			modules = append(modules, strings.Fields(name)[0])
		}
	}
	if strings.Contains(program, "penstock.DataLoader(") && !strings.Contains(program, "output=") {
		modules = append(modules, "torch")
	}
	for _, name := range modules {
		if !strings.HasPrefix(name, "penstock") && !imports(python, name) {
			return name
		}
	}
	return ""
}

// known has the answers of imports.
var known sync.Map

// imports reports whether a Python has a module. It imports packages of modules only, as some take ten seconds.
func imports(python, name string) bool {
	const script = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
	ask, _ := known.LoadOrStore([2]string{python, name}, sync.OnceValue(func() bool {
		return exec.Command(python, "-c", script, name).Run() == nil
	}))
	return ask.(func() bool)()
}

// goPackages are the packages that Go programs of the pages name, by their names.
var goPackages = map[string]string{
	"context": "context", "fmt": "fmt", "log": "log", "os": "os", "time": "time", "signal": "os/signal",
	"mmapds":     "github.com/penstock/penstock/mmapds",
	"loader":     "github.com/penstock/penstock/loader",
	"prepare":    "github.com/penstock/penstock/prepare",
	"raw":        "github.com/penstock/penstock/prepare/raw",
	"sampler":    "github.com/penstock/penstock/loader/sampler",
	"combine":    "github.com/penstock/penstock/loader/combine",
	"expr":       "github.com/penstock/penstock/loader/expr",
	"transforms": "github.com/penstock/penstock/transforms",
	"tensor":     "github.com/penstock/penstock/tensor",
	"store":      "github.com/penstock/penstock/store",
	"cloud":      "github.com/penstock/penstock/remote/cloud",
	"mirror":     "github.com/penstock/penstock/remote/mirror",
	"cuda":       "github.com/penstock/penstock/loader/cuda",
}

// Every Go program and fragment of a page compiles. A fragment stands in a function that has a
// context, a state of a loader, and a step to train; its results are an error.
func TestPagesCompile(t *testing.T) {
	dir, err := os.MkdirTemp(".", "_compiled-") // which ./... leaves out
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	var packages []string
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.lang != "go" {
				continue
			}
			if b.skip != "" {
				t.Logf("%s is not compiled: %s", b, b.skip)
				continue
			}
			pkg := filepath.Join(dir, fmt.Sprintf("p%d", len(packages)))
			require.NoError(t, os.Mkdir(pkg, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(pkg, "main.go"), source(t, b), 0o644))
			packages = append(packages, "./"+pkg)
		}
	}
	if len(packages) == 0 {
		t.Fatal("the pages have no Go")
	}
	// This compiles, and does not link. Go vet would look through all that a package imports.
	if out, err := exec.Command("go", append([]string{"list", "-export", "-tags", "nocloud," + os.Getenv("CODECS")}, packages...)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// source returns the file that compiles a block.
func source(t *testing.T, b block) []byte {
	t.Helper()
	text := b.text
	if !strings.Contains(text, "package main") {
		var head strings.Builder
		head.WriteString("package main\n\nimport (\n")
		for name, path := range goPackages {
			if regexp.MustCompile(`(^|[^\w."/])`+name+`\.[A-Z]`).MatchString(text) || name == "context" {
				fmt.Fprintf(&head, "\t%q\n", path)
			}
		}
		head.WriteString(")\n\nfunc step(...any) {}\n\nfunc main() { _ = run(context.Background()) }\n\n")
		fmt.Fprintf(&head, "func run(ctx context.Context) error {\n%s\nreturn nil\n}\n", text)
		text = head.String()
	}
	text = "// Block " + b.String() + ".\n" + text
	out, err := format.Source([]byte(text))
	if err != nil {
		t.Errorf("%s: %v\n%s", b, err, text)
	}
	return out
}

var fencedText = regexp.MustCompile("(?ms)^```.*?^```$")

var link = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)

// Every link of a page to a file of the project leads to one, and to a heading that it has.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(fencedText.ReplaceAllString(string(data), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(t, target), m[2][1:]) {
				t.Errorf("%s: %s has no heading %s", page, m[1], m[2])
			}
		}
	}
}

var notAnchor = regexp.MustCompile("[^a-z0-9 _-]")

// anchors returns the names of a page's headings as GitHub makes them.
func anchors(t *testing.T, page string) (list []string) {
	t.Helper()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if text, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			list = append(list, strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), ""), " ", "-"))
		}
	}
	return list
}
