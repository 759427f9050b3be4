export interface ResourceTemplate<Target> { readonly literals: readonly string[], readonly target: Target }

/** The work that is left for searching literals in URIs. A search costs at most literal length times URI length. */
interface MatchWork { left: number }

/** Longer URIs match no template, since the cost of matching grows with URI length times literal length. */
export const maxUriLength = 8 * 1024

/** The literals between the expressions of a URI template (RFC 6570). */
export const templateLiterals = (uriTemplate: string): string[] => uriTemplate.split(/\{[^{}]*\}/)

/**
 * Whether a URI can be an expansion of a template: it contains the template's literals in order, the first and the last
 * at its ends. Matching is fast for any template, since there is no backtracking, and the length of the URI is limited.
 * @param work limits the total work of all comparisons; when it is used up, no template that needs a search matches
 */
export function matchesTemplate (
  literals: readonly string[], uri: string, work: MatchWork = { left: Infinity }
): boolean {
  if (uri.length > maxUriLength) return false
  const first = literals[0] ?? ''
  const last = literals.at(-1) ?? ''
  if (literals.length === 1) return uri === first
  if (!uri.startsWith(first) || !uri.endsWith(last) || uri.length < first.length + last.length) return false
  let at = first.length
  const end = uri.length - last.length
  for (const literal of literals.slice(1, -1)) {
    work.left -= (literal.length + 1) * (end - at)
    if (work.left < 0) return false
    const found = uri.indexOf(literal, at)
    if (found === -1 || found + literal.length > end) return false
    at = found + literal.length
  }
  return true
}
