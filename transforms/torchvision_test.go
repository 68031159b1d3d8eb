package transforms

import (
	"hash/crc32"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestTorchvision compares with torchvision what is given there to the operations that are
// random otherwise: not one byte may differ.
func TestTorchvision(t *testing.T) {
	text, err := os.ReadFile("testdata/golden_torchvision.txt")
	if err != nil {
		t.Fatal(err)
	}
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
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, v)
		}
		got := crc32.ChecksumIEEE(apply(t, testImage(n[0], n[1], n[2]), do(func(p *Plan) error { return torchvisionOp(p, op, name, n[3:]) })))
		want, err := strconv.ParseUint(fields[last], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if got != uint32(want) {
			t.Errorf("%s: crc %08x", strings.TrimSpace(line), got)
		}
		compared[op]++
	}
	if compared["autoaugment"] < 300 || compared["perspective"] < 60 {
		t.Errorf("compared %v", compared)
	}
}

func torchvisionOp(p *Plan, op, name string, n []int) error {
	if op == "autoaugment" {
		return p.autoAugment(policies[name][n[0]][n[1]], n[2] == 1, 0, [3]byte{})
	}
	f, err := parseWarpFilter(name)
	if err != nil {
		return err
	}
	var to [4][2]float64
	for i := range to {
		to[i] = [2]float64{float64(n[2*i]), float64(n[2*i+1])}
	}
	return p.perspective(to, f, [3]byte{9, 8, 7})
}
