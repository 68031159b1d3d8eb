package preprocess

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// The command appends by the recipe of the dataset, so that no flag has to be given again; flags
// that are given count more, and a dataset of new samples is not transformed a second time.
func TestAppendTakesTheRecipe(t *testing.T) {
	base, more := config(t, rawtest.Folder(t, 10)), rawtest.Folder(t, 4)
	command := func(args ...string) error {
		cmd := Command()
		cmd.SetArgs(append(args, "--quiet"))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(t.Context())
	}
	require.NoError(t, command(base.Source, base.Dest, "--resize", "24", "--crop", "16", "--color", "gray", "--normalize", "dataset"))
	require.NoError(t, command(more, base.Dest, "--append"))
	m := rawtest.Manifest(t, base.Dest)
	if want := []int{1, 16, 16}; m.Records != 14 || !slices.Equal(m.Fields[0].Shape, want) || m.Fields[0].Normalization == nil {
		t.Errorf("%d records of %v, %v", m.Records, m.Fields[0].Shape, m.Fields[0].Normalization)
	}
	if err := command(more, base.Dest, "--append", "--color", "rgb"); err == nil || !strings.Contains(err.Error(), "uint8 (3, 16, 16)") {
		t.Errorf("another color: error %v", err)
	}
	new := base.Dest + "-new"
	require.NoError(t, command(more, new, "--resize", "16x16", "--color", "gray"))
	if err := command(new, base.Dest, "--append"); err != nil || rawtest.Manifest(t, base.Dest).Records != 18 {
		t.Errorf("a dataset of new samples: error %v", err)
	}
}
