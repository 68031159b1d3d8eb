package summary

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/prepare/source/kinds"
)

// openCommand opens what the command that a file's origin names would read.
func openCommand(t *testing.T, path string, o *Origin) source.Info {
	t.Helper()
	_, fields, _ := strings.Cut(o.Command, " --fields ") // none is all
	s, err := kinds.Open(t.Context(), path, source.Options{Kind: "hdf5", Fields: strings.Trim(fields, "'")})
	if err != nil {
		t.Fatalf("%s: %s: %v", path, o.Command, err)
	}
	defer s.Close()
	return s.Info()
}

// The summary names the program that wrote a file, and is right about it.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		program, script, note string
		fields                int
	}{
		{"MATLAB 7.3", "    d = f.create_dataset('x', data=np.zeros((4, 3)))\n    d.attrs['MATLAB_class'] = np.bytes_('double')\n", "permute(x", 0},
		{"netCDF-4", "    f.attrs['_NCProperties'] = 'version=2'\n    f.create_dataset('x', data=np.zeros(4)).attrs['scale_factor'] = 0.5\n", "packed: x.", 0},
		{"PyTables", "    f.attrs['PYTABLES_FORMAT_VERSION'] = '2.1'\n    f['x'] = np.zeros(3)\n", "VLArray", 0},
		{"pandas (HDFStore)", "    g = f.create_group('df')\n    g.attrs['pandas_type'] = 'frame_table'\n" +
			"    g['table'] = np.zeros(5, [('index', 'i8'), ('values_block_0', 'f8', (2,)), ('name', 'S4')])\n    f['df/_i_table/x'] = np.zeros(3)\n", "data_columns=True", 3},
		{"pandas (HDFStore)", "    g = f.create_group('df')\n    g.attrs['pandas_type'] = 'frame'\n    g['block0_values'] = np.zeros((5, 2))\n", "fixed format", 0},
		{"AnnData", "    f.attrs['encoding-type'] = 'anndata'\n    f['X'] = np.zeros((5, 3))\n    f['obs/n'] = np.arange(5)\n    f['obs/_index'] = ['a'] * 5\n" +
			"    f['var/n'] = np.arange(3)\n    f['obsm/pca'] = np.zeros((5, 2))\n", "a record is a cell", 3},
		{"AnnData", "    f.attrs['encoding-type'] = 'anndata'\n    g = f.create_group('X')\n    g.attrs['encoding-type'] = 'csc_matrix'\n    f['obs/n'] = np.arange(5)\n", "a.X.tocsr()", 0},
	} {
		path := h5test.File(t, c.script)
		s, err := Describe(path)
		require.NoError(t, err)
		o := s.Origin
		if o == nil || o.Program != c.program || !strings.Contains(strings.Join(o.Notes, "\n"), c.note) || (o.Command != "") != (c.fields > 0) {
			t.Errorf("%s: %+v, want a note of %q", c.program, o, c.note)
			continue
		}
		if c.fields > 0 {
			if info := openCommand(t, path, o); len(info.Fields) != c.fields || info.Count != 5 {
				t.Errorf("%s: %+v, want %d fields", o.Command, info, c.fields)
			}
		}
		var b strings.Builder
		if err := s.Render(&b, 0); err != nil || !strings.Contains(b.String(), "\nWritten by "+c.program+"\n") {
			t.Errorf("%v\n%s", err, &b)
		}
	}
	plain := h5test.File(t, "    f['x'] = np.zeros(3)\n")
	if s, err := Describe(plain); err != nil || s.Origin != nil {
		t.Errorf("%+v, error %v", s.Origin, err)
	}
}

// The commands for files of AnnData and pandas themselves make datasets.
func TestOriginsOfPrograms(t *testing.T) {
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	var cases [][3]any
	require.NoError(t, json.Unmarshal(h5test.Run(t, "../../../../prepare/source/kinds/testdata/others_hdf5.py", t.TempDir()), &cases))
	commands := 0
	for _, c := range cases {
		path := c[0].(string)
		s, err := Describe(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		name := filepath.Base(path)
		want := map[string]string{"ad": "AnnData", "pandas": "pandas (HDFStore)", "nc": "netCDF-4", "tables": "PyTables"}[strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' })[0]]
		if want == "" && s.Origin != nil || want != "" && (s.Origin == nil || s.Origin.Program != want) {
			t.Errorf("%s: %+v, want %q", name, s.Origin, want)
		}
		if s.Origin != nil && s.Origin.Command != "" {
			commands++
			if info := openCommand(t, path, s.Origin); info.Count == 0 || len(info.Fields) < 2 {
				t.Errorf("%s: %+v", name, info)
			}
		}
	}
	t.Logf("%d files, %d commands", len(cases), commands)
}
