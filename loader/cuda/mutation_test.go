//go:build linux && (amd64 || arm64) && !nocuda

package cuda

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// edit replaces text of a file of the package.
type edit struct{ file, old, new string }

// mutants are mistakes of synchronization that a device may forgive for weeks.
var mutants = []struct {
	name  string
	edits []edit
}{
	{"the consumer's stream does not wait for the copy", []edit{
		{"batch.go", "return s.dev.order(uintptr(stream), s.copied)", "_ = s\n\treturn nil"},
	}},
	{"the next copy does not wait for the consumer", []edit{
		{"transfer.go", "if err := s.dev.order(s.stream, s.used); err != nil {", "if err := error(nil); err != nil {"},
	}},
	{"the Loader's batch is given back before its copy is done", []edit{
		{"run.go", "err := r.awaitCopy(h.s)", "var err error"},
	}},
	{"the staging memory is filled again before its copy is done", []edit{
		{"transfer.go", "} else if err := s.settle(s.copied); err != nil {", "} else if err := error(nil); err != nil {"},
	}},
	{"memory is freed before the copy is done", []edit{
		{"slot.go", "errs := []error{s.settle(s.copied)}", "var errs []error"},
	}},
	{"memory is freed before the consumer is done", []edit{
		{"slot.go", "errs = append(errs, s.settle(s.used))", ""},
	}},
	{"the event is recorded before the copy", []edit{
		{"transfer.go", "for i, f := range s.p.plan {\n\t\tif err := s.copyField", "if err := s.dev.record(s.copied, s.stream); err != nil {\n\t\treturn err\n\t}\n\tfor i, f := range s.p.plan {\n\t\tif err := s.copyField"},
		{"transfer.go", "return s.dev.record(s.copied, s.stream)", "return nil"},
	}},
	{"the end of a batch is not recorded", []edit{
		{"batch.go", "return joinErrors(s.markUsed(stream, err), s.drop())", "_, _ = stream, err\n\treturn s.drop()"},
	}},
	{"a slot is reused while the loop body has it", []edit{
		{"run.go", "b := it.s.begin()", "b := it.s.begin()\n\tit.s.lane.free <- it.s"},
		{"batch.go", "s.lane.free <- s\n", ""},
	}},
	{"of two streams only the last is waited for", []edit{
		{"batch.go", "err = s.dev.order(uintptr(stream), s.used)", "err = nil"},
	}},
	{"a body that ends without Done is not waited for", []edit{
		{"batch.go", "err = s.dev.Synchronize()\n\t}\n\tif err := joinErrors", "}\n\tif err := joinErrors"},
	}},
	{"the kernel runs alongside the copy", []edit{
		{"transfer.go", "s.mem+at.raw, total, s.stream)", "s.mem+at.raw, total, 0)"},
	}},
	{"what a failed batch has queued is not waited for", []edit{
		{"transfer.go", "return errors.Join(err, s.drain())", "return errors.Join(err)"},
	}},
	{"device memory that a batch has outgrown is freed", []edit{
		{"slot.go", "s.outgrown = append(s.outgrown, s.mem)", "errs = append(errs, s.dev.freeMemory(s.mem))"},
	}},
	{"the default stream of a thread is accepted", []edit{
		{"stream.go", "if s == perThreadStream {", "if s == perThreadStream && d == nil {"},
	}},
	{"a stream that is being captured is accepted", []edit{
		{"stream.go", "if err == nil && status != 0 {", "if err == nil && status > 1 {"},
	}},
	{"the deleter of a tensor leaves another context", []edit{
		{"device.go", "	d.drv.CtxPopCurrent(&ctx)", "	_ = ctx"},
	}},
	{"page-locked memory that a batch has outgrown is freed", []edit{
		{"pinned.go", "if m.dev.keepIdle(b) {", "if false {"},
	}},
	{"a run of records is copied across the end of a mapping", []edit{
		{"registration.go", "here := min(n, len(src)/max(1, size))", "here := n\n\t\t\tsrc = src[:n*size:cap(src)]"},
	}},
	{"the context is not set on the thread", []edit{
		{"device.go", "if r := d.drv.CtxPushCurrent(d.ctx); r != 0 {", "if r := Result(0); r != 0 {"},
	}},
}

// The suite catches every mutant, and nothing but the mutants: the copy of the package that
// is not changed passes.
func TestMutants(t *testing.T) {
	if fakeDriver.why != "" {
		t.Skip("needs the fake driver: ", fakeDriver.why)
	}
	if os.Getenv("PENSTOCK_MUTANT") != "" {
		t.Skip("this is a mutant's own run")
	}
	if os.Getenv("PENSTOCK_MUTANTS") == "" {
		t.Skip("builds the tests once for every mutant, which takes minutes; set PENSTOCK_MUTANTS=1, as .ci/run does")
	}
	if out, ok := suite(t, nil); !ok {
		t.Fatalf("the suite fails without a change:\n%s", out)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			out, ok := suite(t, m.edits)
			switch {
			case ok:
				t.Error("not caught")
			case !strings.Contains(out, "--- FAIL") && !strings.Contains(out, "panic: "):
				t.Errorf("not built, or not run:\n%s", out)
			}
		})
	}
}

// suite runs the tests of the pipeline, in the schedule that is the same each time, on a
// copy of the package with those edits.
func suite(t *testing.T, edits []edit) (out string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	texts := make(map[string]string)
	for _, e := range edits {
		if texts[e.file] == "" {
			b, err := os.ReadFile(e.file)
			require.NoError(t, err)
			texts[e.file] = string(b)
		}
		if n := strings.Count(texts[e.file], e.old); n != 1 {
			t.Fatalf("%s has %q %d times", e.file, e.old, n)
		}
		texts[e.file] = strings.Replace(texts[e.file], e.old, e.new, 1)
	}
	for name, text := range texts {
		full, err := filepath.Abs(name)
		require.NoError(t, err)
		overlay.Replace[full] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(overlay.Replace[full], []byte(text), 0o600))
	}
	b, err := json.Marshal(overlay)
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, b, 0o600))
	const tests = "^Test(Data|Leaving|Unfinished|CloseBehindWork|TwoStreams|Keep|Normalize|DirectRefused|DirectPieces|FailureOfEveryCall)$/^lazy|^Test(ContextIsRestored|StreamIsRefused|GrowthFreesNothing)$"
	cmd := exec.Command("go", "test", "-overlay", list, "-vet=off", "-count=1", "-failfast", "-timeout=2m", "-run", tests, ".")
	cmd.Env = append(os.Environ(), "PENSTOCK_MUTANT=1")
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}
