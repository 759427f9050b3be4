import type { FindRanges } from './range.ts'

/** Matches a character of a local part, the part of an address before the `@`. */
const localPart = /[\p{L}\p{N}.!#$&'*+/=?^_`{|}~-]/u
/** Max length of a local part, in characters; RFC 5321 allows 64. */
const maxLocal = 256
/** Matches a domain name with at least two labels, the last of which consists of letters or is punycode. */
const domain = /(?:[\p{L}\p{N}](?:[\p{L}\p{N}_-]{0,62})\.){1,8}(?:xn--[a-z0-9-]{2,59}|\p{L}{2,24})(?![\p{L}\p{N}])/uy
/** Matches the end of names of image files, such as `icon@2x.png`, which look like addresses. */
const fileName = /\.(?:avif|gif|ico|jpe?g|png|svg|webp)$/i

/** Finds e-mail addresses, including those in URLs. */
export const findEmails: FindRanges = function * (text) {
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    domain.lastIndex = at + 1
    const [host] = domain.exec(text) ?? []
    if (host === undefined || fileName.test(host)) continue
    let start = at
    while (start > 0 && at - start < maxLocal && localPart.test(text.charAt(start - 1))) start--
    // A prefix from a URL or a quotation is not part of the address.
    start += Math.max(...['/', '=', '\''].map((mark) => text.slice(start, at).lastIndexOf(mark))) + 1
    while (start < at && /[^\p{L}\p{N}_+]/u.test(text.charAt(start))) start++
    if (start < at) yield { start, end: at + 1 + host.length }
  }
}
