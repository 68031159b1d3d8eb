package prepare

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/foldertest"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// halfRemoved makes a dataset of two folders of parts, as a merge leaves all that was killed
// when it had removed some of the first one.
func halfRemoved(t *testing.T) (m MergeConfig, id string) {
	t.Helper()
	c := config(t, rawtest.Folder(t, 6))
	m = MergeConfig{Dest: c.Dest}
	for r := range 2 {
		p := c.rank(r, 2)
		p.Dest = filepath.Join(t.TempDir(), "node")
		mustRun(t, p)
		m.Parts = append(m.Parts, part.Folder(p.Dest))
	}
	s, err := Merge(context.Background(), m, &rawtest.Silent{})
	require.NoError(t, err)
	trash := part.TrashPath(m.Parts[0], s.ID)
	require.NoError(t, errors.Join(os.Rename(m.Parts[0], trash), os.Remove(filepath.Join(trash, part.Name(0, 2)+".json"))))
	return m, s.ID
}

// The next merge finishes the removal that was begun, whatever it is asked for.
func TestMergeFinishesRemoval(t *testing.T) {
	for name, change := range map[string]func(*MergeConfig){
		"plain": func(*MergeConfig) {}, "remove": func(m *MergeConfig) { m.RemoveParts = true },
		"overwrite": func(m *MergeConfig) { m.Overwrite, m.RemoveParts = true, true },
		"resume":    func(m *MergeConfig) { m.Resume = true },
	} {
		t.Run(name, func(t *testing.T) {
			m, id := halfRemoved(t)
			made := foldertest.Files(t, m.Dest)
			change(&m)
			s, err := Merge(context.Background(), m, &rawtest.Silent{})
			require.NoError(t, err)
			if s.ID != id || s.Records != 6 || !slices.Equal(s.Hints, []string{completeHint}) {
				t.Errorf("%+v", s)
			}
			if !maps.Equal(foldertest.Files(t, m.Dest), made) {
				t.Error("the dataset changed")
			}
			for _, f := range m.Parts {
				if left, err := os.ReadDir(filepath.Dir(f)); err != nil || len(left) > 0 {
					t.Errorf("left: %v, %v", left, err)
				}
			}
		})
	}
}

// Parts that no merge has removed are reported as missing, whatever another dataset has.
func TestMergeMissesParts(t *testing.T) {
	missing := func(what string, m MergeConfig) {
		t.Helper()
		_, err := Merge(context.Background(), m, &rawtest.Silent{})
		if err == nil || !strings.Contains(err.Error(), "there is no such folder of parts") {
			t.Errorf("%s: error %v", what, err)
		}
		if len(m.Parts) > 1 && part.Gone(m.Parts[1]) {
			t.Errorf("%s: removed parts", what)
		}
	}
	m, id := halfRemoved(t)
	require.NoError(t, os.Rename(part.TrashPath(m.Parts[0], id), part.TrashPath(m.Parts[0], strings.Repeat("0", len(id)))))
	m.RemoveParts = true
	missing("parts of another dataset", m)
	m.Overwrite, m.Resume = true, true
	missing("to be built again", m)

	m, _ = halfRemoved(t)
	other := config(t, rawtest.Folder(t, 8))
	mustRun(t, other.rank(1, 2))
	m.Parts[1], m.Resume = part.Folder(other.Dest), true
	missing("next to parts of another source", m)
	m, _ = halfRemoved(t)
	m.Dest, m.Resume = m.Dest+"2", true
	missing("no dataset", m)
}

// Parts are removed though files of other parts of the same dataset remain.
func TestRemovePartsTwice(t *testing.T) {
	m, id := halfRemoved(t)
	rawtest.Put(t, m.Parts[0], "part-00000-of-00002.json", nil)
	require.NoError(t, part.Remove(m.Parts, id))
	if !part.Gone(m.Parts[0]) || !part.Gone(m.Parts[1]) || !part.Gone(part.TrashPath(m.Parts[0], id)) {
		t.Error("parts are left")
	}
}
