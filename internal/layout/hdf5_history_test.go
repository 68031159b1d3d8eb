package layout

import "testing"

func TestNumbersInWords(t *testing.T) {
	for want, numbers := range map[string][]int{
		"": nil, "3": {3}, "1, 2": {1, 2}, "1 to 3": {1, 2, 3}, "1, 4 to 7, 9, 10": {1, 4, 5, 6, 7, 9, 10},
	} {
		if got := joined(numbers); got != want {
			t.Errorf("%v: %s, want %s", numbers, got, want)
		}
	}
}
