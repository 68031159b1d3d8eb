package transforms

import (
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/internal/testkit/require"
)

// TestTorchvision compares with torchvision what is given there to the operations that are
// random otherwise: not one byte may differ.
func TestTorchvision(t *testing.T) {
	text, err := os.ReadFile("testdata/golden_torchvision.txt")
	require.NoError(t, err)
	compared := map[string]int{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		op, name, last := fields[0], fields[1], len(fields)-1
		var n []int
		for _, s := range fields[2:last] {
			v, err := strconv.Atoi(s)
			require.NoError(t, err)
			n = append(n, v)
		}
		got := crc32.ChecksumIEEE(apply(t, testImage(n[0], n[1], n[2]),
			do(func(p *Plan) error { return torchvisionOp(p, op, name, n[3:]) })))
		want, err := strconv.ParseUint(fields[last], 16, 32)
		require.NoError(t, err)
		if got != uint32(want) {
			t.Errorf("%s: crc %08x", strings.TrimSpace(line), got)
		}
		compared[op]++
	}
	if compared["autoaugment"] < 300 || compared["perspective"] < 60 || compared["augmix"] < 70 ||
		compared["elastic"] < 20 {
		t.Errorf("compared %v", compared)
	}
}

func torchvisionOp(p *Plan, op, name string, n []int) error {
	if op == "autoaugment" {
		return addPolicyStep(p, policies[name][n[0]][n[1]], n[2] == 1, 0, [3]byte{})
	}
	f, err := parseWarpFilter(name)
	switch {
	case err != nil:
		return err
	case op == "augmix":
		return mixOf(p, f, n)
	case op == "elastic":
		return addChange(p, func(m, other *Image, _ OpArgs) {
			other.Reshape(m.W, m.H, m.C)
			dx, dy := testField(m.W, m.H, float32(n[0]))
			displace(other, m, dx, dy, f, [3]byte{9, 8, 7})
			*m, *other = *other, *m
		})
	}
	var to [4][2]float64
	for i := range to {
		to[i] = [2]float64{float64(n[2*i]), float64(n[2*i+1])}
	}
	return addPerspective(p, to, f, [3]byte{9, 8, 7})
}

// mixOf is AugMix of three chains: n is the share of the image, then of each chain its share, how
// many operations it has, and their numbers, strengths and directions.
func mixOf(p *Plan, f kernel.Filter, n []int) error {
	var chains [3][]int
	shares, total := [4]int{n[0]}, n[0]
	for i, rest := 0, n[1:]; i < len(chains); i++ {
		shares[i+1], chains[i] = rest[0], rest[2:2+3*rest[1]]
		total, rest = total+rest[0], rest[2+3*rest[1]:]
	}
	share := func(i int) float64 { return float64(float32(shares[i]) / float32(total)) }
	err := addMix(p, mixBegin, share(0))
	for i, chain := range chains {
		for ; len(chain) > 0 && err == nil; chain = chain[3:] {
			err = augmentBy(p, augMixOps[chain[0]], &augMixSpace, chain[1], augMixBins, chain[2] == 1, f, [3]byte{})
		}
		if err == nil {
			err = addMix(p, mixAdd, share(i+1))
		}
	}
	if err != nil {
		return err
	}
	return addMix(p, mixEnd, 0)
}

// testField returns the distances that golden_torchvision.py makes, in shares of half the image.
func testField(w, h int, alpha float32) (dx, dy []float32) {
	x := uint32(7)
	next := func(size int) float32 {
		x = x*1664525 + 1013904223
		return float32((float32(x>>8)/(1<<23)-1)*alpha) / float32(size)
	}
	for range w * h {
		dx, dy = append(dx, next(w)), append(dy, next(h))
	}
	return dx, dy
}
