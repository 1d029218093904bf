package access

// PressesPerSubject is for the test of it.
var PressesPerSubject = pressesPerSubject
