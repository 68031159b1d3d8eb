package preprocess

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

// Images are resized in the order of the newest Pillow, which the recipe says.
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
}
