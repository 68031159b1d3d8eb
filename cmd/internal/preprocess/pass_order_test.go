package preprocess

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

// Images are resized in the order of the newest Pillow, which the recipe says; a dataset that
// does not say in which order is continued in the earlier one.
func TestPassOrder(t *testing.T) {
	images := filepath.Join(t.TempDir(), "photos")
	for _, name := range []string{"a.png", "b.png"} {
		rawtest.Put(t, images, "tall/"+name, rawtest.Picture(t, name, 31, 200, int(name[0])))
	}
	made := func(flags string) prepare.Config {
		t.Helper()
		c, err := parseFlags(t, images+" "+filepath.Join(t.TempDir(), "ds")+" --resize 60x30 --filter lanczos "+flags)
		require.NoError(t, err)
		mustRun(t, c)
		return c
	}
	plain, auto, horizontal := made(""), made("--pass-order auto"), made("--pass-order horizontal")
	if !bytes.Equal(rawtest.Payload(t, plain.Dest, "images"), rawtest.Payload(t, auto.Dest, "images")) {
		t.Error("the default is not auto")
	}
	if bytes.Equal(rawtest.Payload(t, plain.Dest, "images"), rawtest.Payload(t, horizontal.Dest, "images")) {
		t.Error("the order changes nothing")
	}
	for c, want := range map[*prepare.Config]string{&plain: "auto", &horizontal: "horizontal"} {
		if recipe := string(rawtest.Manifest(t, c.Dest).Recipe.Transforms); !strings.Contains(recipe, `"pass_order": "`+want+`"`) {
			t.Errorf("%s has not %s", recipe, want)
		}
	}
	if _, err := parseFlags(t, images+" x --pass-order vertical"); err == nil || !strings.Contains(err.Error(), "--pass-order vertical: must be one of auto, horizontal") {
		t.Errorf("vertical: %v", err)
	}

	old := rawtest.Manifest(t, horizontal.Dest) // as of a version that knew no other order
	old.Recipe.Transforms = bytes.ReplaceAll(old.Recipe.Transforms, []byte(`"pass_order": "horizontal",`), nil)
	again := fromRecipe(t, old.Recipe, images, filepath.Join(t.TempDir(), "again"))
	mustRun(t, again)
	if !bytes.Equal(rawtest.Payload(t, again.Dest, "images"), rawtest.Payload(t, horizontal.Dest, "images")) {
		t.Error("--pipeline of a recipe without the order has another one")
	}
	text, err := old.Encode()
	require.NoError(t, err)
	manifest := filepath.Join(horizontal.Dest, layout.ManifestName)
	if err := errors.Join(os.Remove(manifest), os.WriteFile(manifest, text, 0o666)); err != nil { // it is read-only
		t.Fatal(err)
	}
	more, err := parseFlags(t, images+" "+horizontal.Dest+" --append")
	require.NoError(t, err)
	before := rawtest.Payload(t, horizontal.Dest, "images")
	mustRun(t, more)
	added, err := os.ReadFile(filepath.Join(horizontal.Dest, "images-00001.npy"))
	require.NoError(t, err)
	if !bytes.Equal(added[layout.HeaderBytes:], before) {
		t.Error("--append to a dataset without the order has another one")
	}
}
