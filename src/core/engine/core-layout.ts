/**
 * Layout of linear memory: byte offsets inside an upload's context and inside an instance's scratch. The WASM
 * core and its host compile this same file and so cannot disagree; therefore the file holds nothing but plain
 * integer constants.
 */

// Context: everything known of one upload between two slices. Zeroed by init.
/** u32: the first word of the build's fingerprint, or 0 once the file is finished. */
export const TAG = 0;
/** u32: index into CONTAINERS. */
export const CONTAINER = 4;
/** u64: the number of bytes of the file so far. */
export const BYTES = 8;
/** u32, u32: offset and length in bytes of the credential data in the slice that was processed last. */
export const SPAN_OFFSET = 16;
export const SPAN_LENGTH = 20;
/** u64, u64: file offsets where the binding digest leaves out the credential chunk; 0 = no credential. */
export const FORK_AT = 24;
export const RESUME_AT = 32;
/** u32: the number of trailing bytes that may be the start of a credential header and are not hashed yet. */
export const HELD = 40;
/** u32: the number of credential chunks at top level. */
export const CREDENTIALS = 44;
/** u64: bit i = STRUCTURE_FINDINGS[i]. */
export const FINDINGS = 48;
/** u32: the flags FLAG_ below. */
export const FLAGS = 56;
/** u32: index into ENCODINGS. */
export const ENCODING = 60;
/** The hash states: eight words, u64 bytes absorbed, one partial block. */
export const WHOLE = 64;
export const BINDING = 192;
export const HASH_LENGTH = 32;
export const HASH_BUFFER = 48;
export const HASH_BYTES = 112;

export const STATE = 320;
/** u32: the number of bytes that are collected in HEADER. */
export const FILL = 324;
export const HEADER = 328;
/** u32: the purpose for which the current chunk's data is captured, see Capture in the core. */
export const CAPTURE = 344;
export const CHUNK_ODD = 348;
export const CHUNK_AT = 352;
export const CHUNK_END = 360;
export const RIFF_END = 368;
export const RIFF_FIELD = 376;
export const CHUNK_COUNT = 380;
export const DATA_OFFSET = 384;
/** u64: the size in bytes as declared, and after finish the part that the file holds. */
export const DATA_SIZE = 392;
export const FRAMES = 400;
export const LIST_DEPTH = 408;
/** u32: bit i = the list at depth i + 1 has odd size. */
export const LIST_ODD = 412;
export const MEMBER_END = 416;
export const MEMBER_ODD = 424;
/** u32: size field of the fmt chunk, capped at 2^32 - 1. */
export const FMT_SIZE = 428;
export const FMT_AT = 432;
export const BEXT_SIZE = 440;
/** u64 each: ends of the open lists. */
export const LIST_ENDS = 448;
export const LIST_DEPTH_LIMIT = 8;
export const FMT = 512;
export const FMT_BYTES = 40;
/** The longest fmt chunk whose bytes beyond the known fields are ignored. */
export const FMT_LIMIT = 65_536;
export const DS64 = 560;
export const DS64_TABLE_LIMIT = 16;
export const DS64_BYTES = 220;
/** u32: the entries of the ds64 table; u32: 1 if the ds64 governs this file's sizes. */
export const DS64_TABLE_LENGTH = 784;
export const DS64_APPLIES = 788;
/** u32: 1 if the current member is searched for ids; u32: its last four bytes. */
export const SEARCHED = 792;
export const SEARCH_WINDOW = 796;
/** u64 each: the file offset of the first occurrence of a finding. */
export const FINDING_OFFSETS = 832;
/** u64: file offset of the container, after any tag. */
export const CONTAINER_AT = 1344;
/** u32: the reader of the samples, see READER_ below. */
export const READER = 1352;
/** u32: 1 + index into SAMPLES_REASONS, 0 = none. */
export const SAMPLES_REASON = 1356;
/** The hash state of the samples, which is written when their format is known. */
export const SAMPLES = 1360;
/** The header of the samples digest, which begins its hash. */
export const SAMPLES_HEAD = 1472;
export const SAMPLES_HEAD_BYTES = 16;
/** u64: the number of bytes of samples that are hashed, without the header. */
export const SAMPLES_BYTES = 1488;
/** u64, u64: file offsets of the samples, and of the first byte after them. */
export const SAMPLES_FROM = 1496;
export const SAMPLES_TO = 1504;
/** u32, u32: offset and length in bytes of the samples in the slice that was processed last. */
export const RUN_OFFSET = 1512;
export const RUN_LENGTH = 1516;
/** u32: bytes of a sample in the file; u32: bytes of a sample in the digest. */
export const SAMPLE_WIDTH = 1520;
export const SAMPLE_TAKEN = 1524;
/** u32: valid bits of a sample; u32: the flags FORM_ below. */
export const SAMPLE_BITS = 1528;
export const SAMPLE_FORM = 1532;
/** Bytes of a sample that continues in the next slice; u32: their number. */
export const SAMPLE_PART = 1536;
export const SAMPLE_PART_FILL = 1544;
/** u32: 1 if SAMPLE_JOINED holds a sample that began in an earlier slice, as the digest takes it. */
export const SAMPLE_IS_JOINED = 1548;
export const SAMPLE_JOINED = 1552;
/** u64: file offset of the next chunk of an AIFF or CAF file. */
export const CHUNK_NEXT = 1560;
/** u64: file offset at which the chunks of an AIFF file end. */
export const CHUNKS_END = 1568;
/** u64: the number of frames that the file states. */
export const SAMPLES_FRAMES = 1576;
/** u32: the state between two bytes of these chunks; u32, u32: bytes collected in CHUNK_FIELDS, and wanted there. */
export const CHUNK_PHASE = 1584;
export const CHUNK_FIELDS_FILL = 1588;
export const CHUNK_FIELDS_WANT = 1592;
/** u32: the address of the decoder, DECODER_BYTES that belong to this upload, or 0 without one. */
export const DECODER = 1596;
export const CHUNK_FIELDS = 1600;
/** The offset below which init zeroes everything. The rest is written before it is read. */
export const ZEROED_BYTES = 1664;
/** {u32 id, u32 unused, u64 offset, u64 size} each. */
export const CHUNKS = 1664;
export const CHUNK_ENTRY_BYTES = 24;
export const CHUNK_TABLE_LIMIT = 256;
export const CHUNK_COUNT_LIMIT = 4096;
export const BEXT = 7808;
export const BEXT_FIXED_BYTES = 602;
export const CODING_HISTORY_LIMIT = 4096;
export const CONTEXT_BYTES = 12_544;

export const CREDENTIAL_LIMIT = 1_048_576;

export const FLAG_WALKED = 1;
export const FLAG_FMT = 2;
export const FLAG_FMT_WHOLE = 4;
export const FLAG_DATA = 8;
export const FLAG_DS64 = 16;
/** The fields of the ds64 could be read. */
export const FLAG_DS64_WHOLE = 32;
export const FLAG_BEXT = 64;
export const FLAG_BEXT_WHOLE = 128;
export const FLAG_FACT = 256;
export const FLAG_FRAMES = 512;
/** The data chunk runs to the end of the file because its size was never written. */
export const FLAG_DATA_OPEN = 1024;
/** The first credential chunk is complete. */
export const FLAG_CREDENTIAL = 2048;

/** No samples are wanted, or SAMPLES_REASON says why they have no digest. */
export const READER_NONE = 0;
/** The format of the samples is not known yet. */
export const READER_WAITING = 1;
/** The samples are runs of the file. */
export const READER_PCM = 2;
/** The samples are decoded. */
export const READER_FLAC = 3;
/** The samples are decoded, and the slice that was processed last has bytes that are not decoded yet. */
export const READER_PAUSED = 4;

/** Samples are big-endian. */
export const FORM_BIG = 1;
/** Samples are unsigned. */
export const FORM_UNSIGNED = 2;
/** Samples are IEEE floats. */
export const FORM_FLOAT = 4;

// Scratch: belongs to one instance, holds nothing between calls.
/** {u32 context, u32 address, u32 length} each, written by the host. */
export const SLICES = 0;
export const SLICE_BYTES = 12;
export const SLICE_LIMIT = 8;
/** {u32 hash, u32 address, u32 length} each: hashing left to do, at most two jobs for a slice. */
export const JOBS = 96;
export const JOB_BYTES = 12;
/** {u32 hash, u32 address, u32 job} each: the lanes of the kernel of eight. */
export const EIGHT_LANES = 288;
export const EIGHT_LANE_BYTES = 12;
/** The state of the lanes that have no stream. */
export const SPARE = 384;
/** u64 per slice: header bytes that were held back. */
export const KEPT = 416;
/** {u32 fork or 0xFFFFFFFF, u32 unused} per slice. */
export const FORKS = 480;
/** The eight states of the kernel of eight, word by word. */
export const EIGHT_STATES = 640;
/** The words of EIGHT_BLOCKS blocks of each of the streams. More would not stay in the first-level cache. */
export const EIGHT_WORDS = 896;
export const EIGHT_BLOCKS = 32;
export const SCRATCH_BYTES = 17_280;

/** The bytes of a decoder: its state, and one block of FLAC, at most 65,535 samples of eight channels in 2 MiB. */
export const DECODER_BYTES = 2_118_144;
