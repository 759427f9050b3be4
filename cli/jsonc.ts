import { inTextOrder } from '../db/text-order.ts'
import { withoutMark } from '../protocol/text.ts'

/** As deep as servers stand under their names: in `projects.<folder>.mcpServers`, as Claude Code writes them. */
const orderedLevels = 4

/**
 * Parses JSON as editors write their settings: with comments, and commas before a closing bracket. Their places become spaces, so that
 * positions in errors stay right. `orderedEntries` has the members of objects in the order of the text, down to where servers stand.
 * @throws SyntaxError
 */
export function parseJsonc (text: string): unknown {
  const blank = (part: string): string => part.replace(/[^\n]/g, ' ')
  const withoutComments = withoutMark(text)
    .replace(/"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*|\/\*[^]*?\*\//g, (part) => part.startsWith('"') ? part : blank(part))
  const json = withoutComments.replace(/"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])/g, (part) => part === ',' ? ' ' : part)
  return inTextOrder(json, JSON.parse(json) as unknown, orderedLevels)
}
