interface Succeeded<Data> { success: true, data: Data, message: string, warnings?: string[] }

/**
 * The answer of a write that succeeded. Warnings are in `warnings`, and in `message`, which is all that some clients show.
 * @param message a sentence without a full stop
 */
export function succeeded<Data> (data: Data, message: string, warnings: readonly string[]): Succeeded<Data> {
  const text = [message, ...warnings].join('. ')
  return { success: true, data, message: text, ...(warnings.length > 0 && { warnings: [...warnings] }) }
}
