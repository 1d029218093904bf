package discord

import (
	"fmt"
	"slices"
	"strings"
)

// Users maps Discord user ids to the codes of the branches in which the user may give commands. "*" stands for every branch.
// Other users have no access.
type Users map[string][]string

// ParseUsers parses the setting, which maps each user id to comma-separated branch codes.
func ParseUsers(setting map[string]string) (Users, error) {
	users := Users{}
	for id, list := range setting {
		if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r < '0' || r > '9' }) {
			return nil, fmt.Errorf("discord: user id %q is not a number", id)
		}
		for branch := range strings.SplitSeq(list, ",") {
			if branch = strings.TrimSpace(branch); branch == "" {
				return nil, fmt.Errorf("discord: user %s has an empty branch", id)
			}
			users[id] = append(users[id], branch)
		}
	}
	return users, nil
}

func (u Users) known(id string) bool { return id != "" && len(u[id]) > 0 }

func (u Users) allows(id, branch string) bool {
	return branch != "" && u.known(id) && (slices.Contains(u[id], branch) || slices.Contains(u[id], "*"))
}
