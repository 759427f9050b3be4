import { convertAndCheckArguments } from '../../base/json-schema/index.ts'
import { ShareError } from '../../base/limits/index.ts'

/** The end of a shortened string, which no longer has the `format` that a schema requires. */
const shortenedEnd = /… \([\d,]+ more characters?\)/

/**
 * Whether shortened `structuredContent` conforms to the output schema of its tool. Clients refuse the whole result if
 * it does not.
 * @param structured the shortened value, as JSON text
 * @param schema the output schema, as JSON text
 * @param owner the caller, whose share of the worker threads is used
 * @returns false also if this cannot be checked now
 */
export async function conformsToSchema (structured: string, schema: string, owner: string): Promise<boolean> {
  if (!structured.startsWith('{') || (schema.includes('"format"') && shortenedEnd.test(structured))) return false
  try {
    const checked = await convertAndCheckArguments({ schema, args: structured }, owner)
    return checked?.problems.length === 0
  } catch (error) {
    if (error instanceof ShareError) return false
    throw error
  }
}
