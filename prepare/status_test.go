package prepare

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/internal/commit/part"
)

// The state of a rank is that of the last process that said anything; one that runs counts more.
func TestStates(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dest := filepath.Join(t.TempDir(), "ds")
	folder := part.Folder(dest)
	require.NoError(t, os.Mkdir(folder, 0o777))
	for i, s := range []part.Sign{
		{Rank: 1, Samples: 30, Of: 100, Here: 20, Seconds: 2, Time: now.Add(-time.Second)},
		{Rank: 1, Error: "killed elsewhere", Time: now},
		{Rank: 2, Samples: 5, Of: 100, Time: now.Add(-time.Hour)},
		{Rank: 3, Of: -1, Samples: 7, Time: now.Add(time.Hour)}, // its clock is fast
		{Rank: 5, Error: "x", Time: now.Add(-time.Hour)},
		{Rank: 5, Samples: 1, Of: 9, Time: now.Add(-time.Hour / 2)},
	} {
		s.Size, s.Host = 7, "h"
		text, err := json.Marshal(s)
		if err == nil {
			err = part.WriteSign(folder, part.SignName(part.Rank{Index: s.Rank, Size: 7}, string(rune('a'+i))))(text)
		}
		require.NoError(t, err)
	}
	s, err := ReadStatus(t.Context(), dest, now)
	require.NoError(t, err)
	var states []RankState
	for _, r := range s.Ranks {
		states = append(states, r.State)
	}
	if !slices.Equal(states, []RankState{Running, Stopped, Running, Stopped}) || !slices.Equal(s.Missing, []int{0, 4, 6}) {
		t.Errorf("states %v, missing %v", states, s.Missing)
	}
	if s.Running != 2 || s.Stopped != 2 || s.Failed != 0 || s.Done != 30 || s.Rate != 10 || s.Left != -1 {
		t.Errorf("%+v", s)
	}
	put := part.WriteSign(folder, part.SignName(part.Rank{Index: 0, Size: 3}, "z"))
	require.NoError(t, put([]byte(`{"rank":0,"world_size":3}`)))
	if _, err := ReadStatus(t.Context(), dest, now); err == nil {
		t.Error("two world sizes")
	}
	require.NoError(t, put([]byte(`{"rank":9,"world_size":3}`)))
	if _, err := ReadStatus(t.Context(), dest, now); err == nil {
		t.Error("rank 9 of 3")
	}
}
