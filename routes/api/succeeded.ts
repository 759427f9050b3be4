/**
 * The answer of a write that succeeded. Warnings are in `warnings`, and in `message`, which is all that some clients show.
 * @param message a sentence without a full stop
 */
export const succeeded = <Data>(
  data: Data,
  message: string,
  warnings: readonly string[]
): { success: true, data: Data, message: string, warnings?: string[] } => ({
  success: true,
  data,
  message: [message, ...warnings].join('. '),
  ...(warnings.length > 0 && { warnings: [...warnings] })
})
