// The module that runs in a worker thread to count the tokens of results.
import { loadTokenCounter } from '../compression/tokens.ts'

const counter = loadTokenCounter()

export const run = async (text: string): Promise<number> => (await counter)(text)
