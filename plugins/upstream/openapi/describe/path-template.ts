/** A path template with plain expressions, `{name}`, and the names of those whose values may have slashes. */
interface PathTemplate { readonly path: string, readonly names: ReadonlySet<string>, readonly withSlashes: ReadonlySet<string> }

/**
 * Reads a path template. An expression belongs to the parameter of its name, also where a framework's notation stands around the name.
 * @param declared the names of the path parameters that the operation has; one that is a whole expression comes first
 */
export function readPathTemplate (template: string, declared: ReadonlySet<unknown>): PathTemplate {
  const names = new Set<string>()
  const withSlashes = new Set<string>()
  const path = piecesOf(template).map((piece) => {
    if (!isExpression(piece)) return piece
    const whole = piece.slice(1, -1)
    const { name: bare, isGreedy } = readExpression(whole)
    const name = declared.has(whole) || bare === '' ? whole : bare
    names.add(name)
    if (isGreedy) withSlashes.add(name)
    return `{${name}}`
  }).join('')
  return { path, names, withSlashes }
}

/**
 * The name in an expression as frameworks write it: `*path`, `**path`, `path*`, `proxy+`, `+path`, `rest:.*`, `id:int`, `name=shelves/*`,
 * `id?`. `isGreedy`: its value may have slashes.
 */
function readExpression (whole: string): { name: string, isGreedy: boolean } {
  const end = whole.search(/[:=]/)
  const marked = end === -1 ? whole : whole.slice(0, end)
  const pattern = end === -1 ? '' : whole.slice(end + 1)
  let first = 0
  let last = marked.length
  while (first < last && '*+'.includes(marked.charAt(first))) first++
  while (last > first && '*+?'.includes(marked.charAt(last - 1))) last--
  const isMarked = first > 0 || /[*+]/.test(marked.slice(last))
  return { name: marked.slice(first, last).trim(), isGreedy: isMarked || /\.[*+]|\/|\*\*/.test(pattern) }
}

const isExpression = (piece: string): boolean => piece.length > 2 && piece.startsWith('{') && piece.endsWith('}')

/** The literals and expressions of a template. A pattern within an expression may have braces of its own. */
function piecesOf (template: string): string[] {
  const pieces: string[] = []
  let start = 0
  let depth = 0
  for (let at = 0; at < template.length; at++) {
    const character = template[at]
    if (character === '{' && depth++ === 0) {
      pieces.push(template.slice(start, at))
      start = at
    } else if (character === '}' && depth > 0 && --depth === 0) {
      pieces.push(template.slice(start, at + 1))
      start = at + 1
    }
  }
  return [...pieces, template.slice(start)]
}
