// Package pass keeps the agents' lists of passes up to date and takes in the journals of their keypads.
//
// A pass is a row that follows its reservation (postgres.IssuePass and its trigger). This package makes them known to the
// agent that checks them:
//
//	pass changes ──► PrepareList: a new version ──► passes/list, repeated until ──► passes/applied ──► quarantines end
//
// The database decides what an agent may hold: a pass counts as held from the commit before its list is sent until a newer
// list is acknowledged. The memory of a replica is only a timetable. Journal entries are stored once, in the order of their
// chain, and acknowledged after the commit (docs/specification.md, Passes).
package pass
