/** A resource template of some server. */
export interface ResourceTemplate<Target> { readonly literals: readonly string[], readonly target: Target }

/** Remaining work for literals in URIs; a search costs at most the length of the literal times that of the URI. */
interface MatchWork { left: number }

/** Longer URIs match no template: the cost of matching grows with the length of the URI times that of a literal. */
export const maxUriLength = 8 * 1024

/** The literal pieces between a URI template's expressions (RFC 6570). */
export const templateLiterals = (uriTemplate: string): string[] => uriTemplate.split(/\{[^{}]*\}/)

/**
 * Whether a URI can be an expansion of a template: it contains the template's literals in order, the first and the last
 * at its ends. Templates come from upstreams and must not cause slow matching: there is no backtracking, and the length
 * of the URI is limited.
 * @param work limits the work of all comparisons together; beyond: nothing matches
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
