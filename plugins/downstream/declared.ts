import { code, RpcError } from '../../protocol/errors.ts'
import { memoryOf } from '../../protocol/text.ts'
import { memoryOfJson } from '../base/body/index.ts'
import { limits } from '../base/limits/index.ts'

/**
 * Checks the size of the capabilities that a client declares: they are kept as long as the client is.
 * @param text of the object
 * @param name of the member, for the error
 * @returns the memory that they take, in bytes
 * @throws RpcError -32602 where they are larger than `limits.capabilities`
 */
export function checkDeclared (text: string, name: string): number {
  const { text: most, memory } = limits.capabilities
  if (memoryOf(text) > most) {
    const sentence = `has more than ${most} characters, or half as many where any is beyond Latin-1; declare less, or shorter texts`
    throw new RpcError(code.invalidParams, `Invalid params: "${name}" ${sentence}`)
  }
  const size = memoryOfJson(text)
  if (size > memory) throw new RpcError(code.invalidParams, `Invalid params: "${name}" has too many members and values; declare less`)
  return size
}
