import { convertAndCheckArguments } from '../../base/json-schema/index.ts'
import { baseLimits, ShareError } from '../../base/limits/index.ts'

/** The end of a shortened string, which no longer has the `format` that a schema requires. */
const shortenedEnd = /… \([\d,]+ more characters?\)/

/**
 * Whether shortened `structuredContent` conforms to the output schema of its tool. Clients refuse the whole result if
 * it does not.
 * @param structured the shortened value, as JSON text
 * @param schema the output schema, as JSON text
 * @param owner the caller, whose share of the worker threads is used
 * @param reportFailure called with the reason if the check fails
 * @returns false also if this cannot be checked: the schema is too large, the check fails, or too many checks wait
 */
export async function conformsToSchema (
  structured: string, schema: string, owner: string, reportFailure: (reason: unknown) => void
): Promise<boolean> {
  if (schema.length > baseLimits.checkedSchema) return false
  if (!structured.startsWith('{') || (schema.includes('"format"') && shortenedEnd.test(structured))) return false
  try {
    const checked = await convertAndCheckArguments({ schema, args: structured, isValidationOnly: true }, owner)
    return checked?.problems.length === 0
  } catch (error) {
    if (!(error instanceof ShareError)) reportFailure(error)
    return false
  }
}
