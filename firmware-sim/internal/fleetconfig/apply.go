package fleetconfig

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"
)

// applied is the part of the branch file (`yeolda branch apply`) that a fleet needs.
type applied struct {
	Demo     bool            `yaml:"demo"`
	Branches []appliedBranch `yaml:"branches"`
}

type appliedBranch struct {
	Code     string            `yaml:"code"`
	Name     map[string]string `yaml:"name"`
	Address  string            `yaml:"address"`
	Phone    string            `yaml:"phone"`
	FrontPIN string            `yaml:"frontPin"`
	Rooms    []appliedRoom     `yaml:"rooms"`
	Agents   []appliedAgent    `yaml:"agents"`
}

type appliedRoom struct {
	No      int            `yaml:"no"`
	Machine string         `yaml:"machine"`
	Grade   string         `yaml:"grade"`
	Price   map[string]int `yaml:"price"`
	PIN     string         `yaml:"pin"`
}

type appliedAgent struct {
	Username string `yaml:"username"`
	Secret   string `yaml:"secret"`
}

// BranchFile returns the file with which `yeolda branch apply` creates the branches of a fleet. They are open day and
// night and are demo data: a service with a public address rejects them.
func BranchFile(n int) ([]byte, error) { return BranchFilePart(0, n) }

// BranchFilePart returns the file of n branches of a fleet that follow the first ones. A file of more than 16 MiB, which is
// some 20,000 branches, is rejected by `yeolda branch apply`.
func BranchFilePart(first, n int) ([]byte, error) {
	if n < 1 || first < 0 {
		return nil, fmt.Errorf("fleet: cannot make %d branches after the first %d", n, first)
	}
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = first + 1 + i
	}
	return BranchFileOf(numbers)
}

// BranchFileOf returns the file of some branches of a fleet, by their numbers from 1.
func BranchFileOf(numbers []int) ([]byte, error) {
	fleet, err := Fleet(slices.Max(numbers))
	if err != nil {
		return nil, err
	}
	out := applied{Demo: true}
	for _, number := range numbers {
		i := number - 1
		b := fleet[i]
		in := appliedBranch{
			Code:    b.Branch,
			Name:    map[string]string{"ko": fmt.Sprintf("부하 시험 %d호점", i+1), "en": fmt.Sprintf("Load test %d", i+1)},
			Address: "서울특별시 가상구 시험로 1", Phone: "02-0000-0000", FrontPIN: fmt.Sprintf("90%04d", (i+1)%10_000),
			Agents: []appliedAgent{{Username: "agent-" + b.Branch, Secret: b.Password}},
		}
		for room := 1; room <= FleetRooms; room++ {
			in.Rooms = append(in.Rooms, appliedRoom{
				No: room, Machine: fmt.Sprintf("시험 기기 %d", room), Grade: "Standard",
				Price: map[string]int{"min10": 3000, "min30": 8000, "min60": 15000}, PIN: fmt.Sprintf("9%d%04d", room, (i+1)%10_000),
			})
		}
		out.Branches = append(out.Branches, in)
	}
	text, err := yaml.Dump(out)
	if err != nil {
		return nil, fmt.Errorf("branch file: %w", err)
	}
	return append([]byte("# Branches for load tests, made by yeolda-sim fleet --write-branches.\n"), text...), nil
}
