package kinds

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// From yields the samples after the first n, with their values, for any n.
func TestFrom(t *testing.T) {
	shards, folders, tables := t.TempDir(), t.TempDir(), t.TempDir()
	for i := range 4 {
		var samples, images []string
		for k := range 10 + 90*(i%2) {
			samples = append(samples, fmt.Sprintf("%d-%d.txt", i, k), fmt.Sprintf("%d-%d.cls", i, k))
			images = append(images, fmt.Sprintf("%d/%03d.jpg", k%2, 100*i+k))
		}
		writeTar(t, filepath.Join(shards, fmt.Sprintf("%d.tar", i)), samples...)
		writeTar(t, filepath.Join(folders, fmt.Sprintf("%d.tar", i)), images...)
		rows := make([]struct{ X int64 }, 7*(i+1))
		for k := range rows {
			rows[k].X = int64(100*i + k)
		}
		require.NoError(t, parquet.WriteFile(filepath.Join(tables, fmt.Sprintf("%d.parquet", i)), rows, parquet.MaxRowsPerRowGroup(5)))
	}
	for _, dir := range []string{shards, folders, tables} {
		s, err := Open(t.Context(), dir, source.Options{})
		require.NoError(t, err)
		all := valuesFrom(t, s, 0)
		if int64(len(all)) != s.Info().Count {
			t.Fatalf("%s: %d samples of %d", dir, len(all), s.Info().Count)
		}
		for n := range len(all) + 1 {
			got := valuesFrom(t, s, int64(n))
			if fmt.Sprint(got) != fmt.Sprint(all[n:]) {
				t.Fatalf("%s: from %d on: %.200q, want %.200q", s.Info().Kind, n, got, all[n:])
			}
		}
		require.NoError(t, s.Close())
	}
}

// valuesFrom returns names and values of all samples but the first n.
func valuesFrom(t *testing.T, s source.Source, n int64) (list []string) {
	t.Helper()
	v := source.NewValues(len(s.Info().Fields))
	for sample, err := range source.From(s, n) {
		if err == nil {
			v.Clear()
			err = sample.Data.Read(v)
		}
		require.NoError(t, err)
		text := sample.Name
		for i := range v.Len() {
			text += fmt.Sprintf(" %x", v.Get(i))
		}
		list = append(list, text)
	}
	return list
}
