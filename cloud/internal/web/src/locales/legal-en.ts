// Terms and privacy policy in English. The Korean text is the binding one.

import type { Legal } from "../customer/legal";

export const legal: Legal = {
  terms: [
    [
      "1. Purpose",
      "These terms govern the unattended room service of {company} (“we”). This is a translation; the Korean text is binding.",
    ],
    [
      "2. Booking and payment",
      "Rooms are booked in steps of ten minutes, up to 5 hours at a time. The booking is confirmed, and the key link issued, when it is paid. A virtual account has to be paid within 10 minutes of its issue; otherwise the booking is cancelled automatically.",
    ],
    [
      "3. The key",
      "The key link opens the entrance and the booked room from 2 minutes before the start until 2 minutes before the end. Do not pass it to anyone but those who come with you; you answer for damage that comes of passing it on.",
    ],
    [
      "4. Cancellation and refunds",
      "Cancel up to 30 minutes before the start and you get everything back. After that, cancellation and refunds are not possible. Cards and easy payments are refunded to the same method, virtual accounts to the account you name, within 3 to 5 working days. If you could not use the room because of us or a defect, we refund what you could not use.",
    ],
    [
      "5. Your duties",
      "Leave by the end of your time, do not damage the facilities and do not disturb others. Whoever causes damage by intent or negligence pays for it.",
    ],
    [
      "6. Limits of liability",
      "We are not liable where force majeure or failures of networks and power that are not our doing keep us from providing the service, unless we acted with intent or negligence.",
    ],
    [
      "7. Disputes",
      "We settle disputes by talking first; failing that, by Korean law and before the competent court. Contact: {phone}, {email}",
    ],
  ],
  privacy: [
    [
      "1. What we collect and why",
      "For a booking: name, mobile number and, if you like, e-mail, to handle the booking and its payment, send the key, know it is you and answer you. For a refund: bank, account number and holder, for nothing but the refund.",
    ],
    [
      "2. How long we keep it",
      "By the E-Commerce Act, records of contracts and payments for 5 years and of complaints for 3 years; then they are destroyed. Refund accounts are destroyed after the refund.",
    ],
    [
      "3. Who works for us",
      "Toss Payments handles payments, a messaging company sends notifications. They get only what that needs.",
    ],
    ["4. Third parties", "We give personal data to nobody else, except where the law demands it."],
    [
      "5. Your rights",
      "You may see, correct or delete your data or have its use stopped at any time. Records that the law has us keep are deleted when their time is over.",
    ],
    [
      "6. Security",
      "Passwords, accounts and other sensitive data are stored encrypted, access is kept to the minimum and recorded.",
    ],
    [
      "7. Cookies",
      "Only those needed to carry on a booking and to remember the login and the language. None for advertising or tracking.",
    ],
    ["8. Contact", "Privacy officer of {company} · {phone} · {email}"],
  ],
};
