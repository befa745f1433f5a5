// The types that the page's modules name in their comments. Only the checker reads this.

interface DtypeShare { dtype: string; tensors: number; parameters: number; bytes: number }
interface FileFacts {
  name: string; format: string; bytes: number; tensors: number; parameters: number; dtypes: DtypeShare[]; metadata: [string, string][]; metadata_total: number;
  notes: string[]; verdict: string; has_objects: boolean; has_pickle: boolean; has_onnx: boolean;
}

/** What a pane may ask of the frame. */
interface Context {
  files: () => FileFacts[]; file: () => FileFacts; base: () => string; signal: () => AbortSignal;
  ask: (what: string, values?: Record<string, string | number | undefined>, signal?: AbortSignal) => Promise<any>; go: (hash: string) => void; tensorLink: (n: number) => string;
  remember: (state: Record<string, string>) => void; title: (text: string) => void;
}

/** Fills a pane; n is the tensor, or the pair, of the address. */
type Show = (context: Context, pane: HTMLElement, parameters: URLSearchParams, n?: number) => void | Promise<void>;

type Ask = (more: Record<string, any>) => string;
type Child = Node | string | number | null | undefined | false;
type Pen = CanvasRenderingContext2D;
type Paint = (pen: Pen, width: number, height: number) => void;

/** A row of a grid: its path, and whether it has children. */
interface Item { path: string; parent: boolean; data: any }
interface Page { total: number; rows: Item[] }
interface Column { key: string; label: string; numeric?: boolean; sort?: string; text?: (data: any) => string; fill?: (cell: HTMLElement, data: any, level: number) => void }
interface GridOptions {
  label: string; columns: Column[]; load: (path: string, offset: number, limit: number, signal: AbortSignal) => Promise<Page>; open: (item: Item) => unknown;
  failed?: (error: unknown) => void; sort?: (key: string) => void; sorted?: () => string; tree?: boolean; name?: (data: any) => string; empty?: string;
}

interface TableData { columns: string[]; rows: any[][] }
/** `data` gives the columns and all rows; the table shows the first of them. */
interface FigureOptions {
  title: string; content: HTMLElement; canvas: HTMLCanvasElement; name: () => string; data: () => TableData | Promise<TableData>; tools?: HTMLElement[]; cls?: string;
}
interface Histogram { edges: number[]; counts: number[]; below: number; above: number }
interface Series { name: string; points: { x: number; y: number; id: number; label: string }[] }

interface Plane { rows: number; cols: number; levels: number; fold: number | null }
interface Tile { w: number; h: number; cells: Float32Array; exact: boolean; limits: number[]; image: HTMLCanvasElement | null; painted: string }
interface HeatmapOptions { base: string; changed: (state: Record<string, string>) => void; signed: (stat: string) => boolean; strips: boolean; numbers: boolean; signal: AbortSignal }
interface Rect { x: number; y: number; w: number; h: number; node: number; dtype: number; value: number }
