import { memberOf } from './json.ts'

/** Whether the text of a result says that its tool failed. */
export const saysError = (output: string): boolean => output.includes('"isError"') && memberOf(output, 'isError') === 'true'
