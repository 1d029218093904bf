package backoffice_test

import (
	"slices"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
)

// TestSumOfRoomsIsInOrder: room 10 follows room 9 in the report of all branches, as in that of one.
func TestSumOfRoomsIsInOrder(t *testing.T) {
	t.Parallel()
	rows := backoffice.SumOccupancy(
		[]backoffice.OccupancyRow{{Key: "hongdae/2"}, {Key: "hongdae/10"}},
		[]backoffice.OccupancyRow{{Key: "gangnam/1"}, {Key: "gangnam/9"}, {Key: "gangnam/10"}})
	var keys []string
	for _, r := range rows {
		keys = append(keys, r.Key)
	}
	if want := []string{"gangnam/1", "gangnam/9", "gangnam/10", "hongdae/2", "hongdae/10"}; !slices.Equal(keys, want) {
		t.Errorf("rows %v, want %v", keys, want)
	}
}
