package booking

import "time"

// KoreanHoliday returns the name of the public holiday on a day in Korea, including substitute holidays and elections.
// Ordinary Sundays are not holidays here. If a lunar holiday falls on a fixed one, the name is the fixed one's and the
// substitute is the lunar one's.
//
// The table covers 2025 to 2028 and follows the law as of 2026-05 (노동절 and 제헌절 are holidays since 2026). 2028 is
// computed, because its almanac appears in June 2027. It is a table because lunar days depend on Korea's new moons, which
// are not always China's: 설날 is a day later in 2027 and 2028. Holidays declared later are added per branch
// ([Schedule.ExtraHolidays]).
func KoreanHoliday(d Date) (name string, ok bool) {
	name, ok = koreanHolidays[d]
	return name, ok
}

// korea is the zone of Korean business days.
var korea = time.FixedZone("KST", 9*60*60)

// BusinessDaysAfter is the end of the n-th Korean business day after a time. Saturdays, Sundays and public holidays do not count.
func BusinessDaysAfter(t time.Time, n int) time.Time {
	day := DateOf(t, korea)
	for n > 0 {
		day = day.AddDays(1)
		weekday := day.At(0, korea).Weekday()
		if _, holiday := KoreanHoliday(day); !holiday && weekday != time.Saturday && weekday != time.Sunday {
			n--
		}
	}
	return day.AddDays(1).At(0, korea)
}

var koreanHolidays = map[Date]string{
	{2025, 1, 1}:   "신정",
	{2025, 1, 27}:  "임시공휴일",
	{2025, 1, 28}:  "설날 연휴",
	{2025, 1, 29}:  "설날",
	{2025, 1, 30}:  "설날 연휴",
	{2025, 3, 1}:   "삼일절",
	{2025, 3, 3}:   "대체공휴일(삼일절)",
	{2025, 5, 5}:   "어린이날·부처님오신날",
	{2025, 5, 6}:   "대체공휴일(부처님오신날)",
	{2025, 6, 3}:   "대통령 선거",
	{2025, 6, 6}:   "현충일",
	{2025, 8, 15}:  "광복절",
	{2025, 10, 3}:  "개천절",
	{2025, 10, 5}:  "추석 연휴",
	{2025, 10, 6}:  "추석",
	{2025, 10, 7}:  "추석 연휴",
	{2025, 10, 8}:  "대체공휴일(추석)",
	{2025, 10, 9}:  "한글날",
	{2025, 12, 25}: "성탄절",

	{2026, 1, 1}:   "신정",
	{2026, 2, 16}:  "설날 연휴",
	{2026, 2, 17}:  "설날",
	{2026, 2, 18}:  "설날 연휴",
	{2026, 3, 1}:   "삼일절",
	{2026, 3, 2}:   "대체공휴일(삼일절)",
	{2026, 5, 1}:   "노동절",
	{2026, 5, 5}:   "어린이날",
	{2026, 5, 24}:  "부처님오신날",
	{2026, 5, 25}:  "대체공휴일(부처님오신날)",
	{2026, 6, 3}:   "지방선거",
	{2026, 6, 6}:   "현충일",
	{2026, 7, 17}:  "제헌절",
	{2026, 8, 15}:  "광복절",
	{2026, 8, 17}:  "대체공휴일(광복절)",
	{2026, 9, 24}:  "추석 연휴",
	{2026, 9, 25}:  "추석",
	{2026, 9, 26}:  "추석 연휴",
	{2026, 10, 3}:  "개천절",
	{2026, 10, 5}:  "대체공휴일(개천절)",
	{2026, 10, 9}:  "한글날",
	{2026, 12, 25}: "성탄절",

	{2027, 1, 1}:   "신정",
	{2027, 2, 6}:   "설날 연휴",
	{2027, 2, 7}:   "설날",
	{2027, 2, 8}:   "설날 연휴",
	{2027, 2, 9}:   "대체공휴일(설날)",
	{2027, 3, 1}:   "삼일절",
	{2027, 5, 1}:   "노동절",
	{2027, 5, 3}:   "대체공휴일(노동절)",
	{2027, 5, 5}:   "어린이날",
	{2027, 5, 13}:  "부처님오신날",
	{2027, 6, 6}:   "현충일",
	{2027, 7, 17}:  "제헌절",
	{2027, 7, 19}:  "대체공휴일(제헌절)",
	{2027, 8, 15}:  "광복절",
	{2027, 8, 16}:  "대체공휴일(광복절)",
	{2027, 9, 14}:  "추석 연휴",
	{2027, 9, 15}:  "추석",
	{2027, 9, 16}:  "추석 연휴",
	{2027, 10, 3}:  "개천절",
	{2027, 10, 4}:  "대체공휴일(개천절)",
	{2027, 10, 9}:  "한글날",
	{2027, 10, 11}: "대체공휴일(한글날)",
	{2027, 12, 25}: "성탄절",
	{2027, 12, 27}: "대체공휴일(성탄절)",

	{2028, 1, 1}:   "신정",
	{2028, 1, 26}:  "설날 연휴",
	{2028, 1, 27}:  "설날",
	{2028, 1, 28}:  "설날 연휴",
	{2028, 3, 1}:   "삼일절",
	{2028, 4, 12}:  "국회의원 선거",
	{2028, 5, 1}:   "노동절",
	{2028, 5, 2}:   "부처님오신날",
	{2028, 5, 5}:   "어린이날",
	{2028, 6, 6}:   "현충일",
	{2028, 7, 17}:  "제헌절",
	{2028, 8, 15}:  "광복절",
	{2028, 10, 2}:  "추석 연휴",
	{2028, 10, 3}:  "개천절·추석",
	{2028, 10, 4}:  "추석 연휴",
	{2028, 10, 5}:  "대체공휴일(추석)",
	{2028, 10, 9}:  "한글날",
	{2028, 12, 25}: "성탄절",
}
