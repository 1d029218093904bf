package infrared

// State is what the display of an air conditioner shows.
type State struct {
	Power bool
	// Mode is cool, dry, fan, auto or heat; empty until the unit has been told.
	Mode string
	// Temperature is the set point in °C; 0 until the unit has been told.
	Temperature int
	// Fan is lowest, low, mid, high, max or auto; empty until the unit has been told.
	Fan string
	// Direction is the louvre: on while it swings, off while it stands; empty
	// until the unit has been told.
	Direction string
}

// Message is one decoded frame and what it does to a unit.
type Message struct {
	// Protocol is the remote's protocol, LG or Samsung.
	Protocol string
	// Code is the frame's content in hexadecimal, for people.
	Code  string
	apply func(*State)
}

// Apply changes s as a unit that hears m would.
func (m Message) Apply(s *State) {
	if m.apply != nil {
		m.apply(s)
	}
}

// Decode reads one frame (see Split). ok is false when it is of no protocol
// known here or its checksum is wrong: the unit heard noise.
func Decode(frame []uint32) (m Message, ok bool) {
	if m, ok := decodeLG(frame); ok {
		return m, true
	}
	return decodeSamsung(frame)
}
